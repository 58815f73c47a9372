package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

const csvHead = "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask\n"

func TestReadCSV(t *testing.T) {
	t.Parallel()
	device := uuid.MustParse("6e6ccf0f-4d92-492f-bfdd-5e68692d4149")
	rows, err := readCSV(strings.NewReader(csvHead + "2026-11-20T10:05:00Z," + device.String() + `,"a, b",412.5,,7,,0,21` + "\n"))
	require.NoError(t, err)
	want := ledger.Row{Key: ledger.KeyOf(device, time.Date(2026, time.November, 20, 10, 5, 0, 0, time.UTC))}
	want.Values.Set(roomsensor.CO2, 412.5)
	want.Values.Set(roomsensor.Humidity, 7)
	want.Values.Set(roomsensor.Sound, 0)
	require.Equal(t, []ledger.Row{want}, rows)
}
