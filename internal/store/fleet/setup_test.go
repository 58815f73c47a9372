package fleet_test

import (
	"testing"

	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const patience = storetest.Patience

var (
	at          = storetest.At
	open        = storetest.Open
	requireCode = storetest.RequireCode
	rename      = storetest.Rename
)

type fixture struct{ *storetest.Fixture }

func setup(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.New(t)}
}
