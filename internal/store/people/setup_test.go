package people_test

import (
	"testing"

	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

var (
	at     = storetest.At
	co2    = storetest.CO2
	open   = storetest.Open
	rename = storetest.Rename
)

type fixture struct{ *storetest.Fixture }

func setup(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.New(t)}
}
