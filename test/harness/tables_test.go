package harness

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

func TestRowOf(t *testing.T) {
	t.Parallel()
	device := uuid.MustParse("6e6ccf0f-4d92-492f-bfdd-5e68692d4149")
	at := time.Date(2026, time.November, 20, 10, 5, 0, 0, time.UTC)
	row := rowOf(&client.DeviceReading{DeviceID: device, Reading: client.Reading{
		BucketAt: at, CO2PPM: new(412.5), HumidityPct: new(7.0), SPLDB: new(0.0),
	}})
	want := ledger.Row{Key: ledger.KeyOf(device, at)}
	want.Values.Set(roomsensor.CO2, 412.5)
	want.Values.Set(roomsensor.Humidity, 7)
	want.Values.Set(roomsensor.Sound, 0)
	require.Equal(t, want, row)
}
