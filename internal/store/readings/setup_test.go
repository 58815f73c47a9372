package readings_test

import (
	"testing"

	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const patience = storetest.Patience

var (
	at         = storetest.At
	co2        = storetest.CO2
	days       = storetest.Days
	exportFrom = storetest.From
)

type fixture struct{ *storetest.Fixture }

func setup(t testing.TB) *fixture {
	t.Helper()
	return &fixture{storetest.New(t)}
}
