package ops_test

import (
	"testing"

	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

const patience = storetest.Patience

var (
	at   = storetest.At
	co2  = storetest.CO2
	open = storetest.Open
)

type fixture struct{ *storetest.Fixture }

func setup(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.New(t)}
}
