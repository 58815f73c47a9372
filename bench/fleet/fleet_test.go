package fleet_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
)

var small = fleet.Fleet{
	Seed: 3, Devices: 5, Deep: 2, Days: 3, Recent: 1, Gaps: 4, Until: time.Date(2026, 3, 4, 5, 5, 0, 0, time.UTC),
}

// TestWriteBinary stores the output with COPY and compares it with the readings.
func TestWriteBinary(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), dbtest.New(t).URL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	var text bytes.Buffer
	require.NoError(t, small.WriteBinary(&text, small.From(), small.Until))
	tag, err := conn.PgConn().CopyFrom(t.Context(), &text, fleet.CopySQL)
	require.NoError(t, err)
	require.EqualValues(t, small.Rows(small.From(), small.Until), tag.RowsAffected())
	require.EqualValues(t, 288*(2*2+5), tag.RowsAffected())

	at := small.Until.Add(-roomsensor.BucketLength)
	for i := range small.Devices {
		var hardware string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT "+small.HardwareIDSQL("$1"), strconv.Itoa(i)).Scan(&hardware))
		require.Equal(t, small.HardwareID(i), hardware)
		want := small.Reading(i, at)
		var co2 float32
		var sound *float32
		var measured time.Time
		err := conn.QueryRow(t.Context(), "SELECT co2_ppm, spl_db, measured_at FROM readings WHERE bucket_at = $1 AND device_id = "+
			small.DeviceIDSQL("$2"), at, strconv.Itoa(i)).Scan(&co2, &sound, &measured)
		require.NoError(t, err)
		require.True(t, measured.Equal(want.MeasuredAt))
		x, _ := want.Values.Get(roomsensor.CO2)
		require.Equal(t, x, co2)
		x, ok := want.Values.Get(roomsensor.Sound)
		require.Equal(t, ok, sound != nil)
		if ok {
			require.Equal(t, x, *sound)
		}
	}
}

func TestFleetSeed(t *testing.T) {
	t.Parallel()
	same, other := small, small
	other.Seed++
	at := small.Until
	require.Equal(t, small.Reading(1, at), same.Reading(1, at))
	require.NotEqual(t, small.Reading(1, at), other.Reading(1, at))
	require.NotEqual(t, small.Reading(1, at), small.Reading(2, at))
	require.NotEqual(t, small.DeviceID(1), other.DeviceID(1))
	require.NotEqual(t, uuid.Nil, small.DeviceID(0))
}

func TestUploads(t *testing.T) {
	t.Parallel()
	window := roomsensor.Window{From: small.Until.Add(-2 * time.Hour), To: small.Until}
	seen := map[string]bool{}
	for _, text := range small.Uploads(window, time.Hour) {
		var upload struct {
			HardwareID string `json:"hardware_id"`
			Readings   []struct {
				MeasuredAt string `json:"measured_at"`
			} `json:"readings"`
		}
		require.NoError(t, json.Unmarshal(text, &upload))
		for _, r := range upload.Readings {
			key := upload.HardwareID + r.MeasuredAt
			require.False(t, seen[key])
			seen[key] = true
		}
	}
	require.Len(t, seen, small.Devices*24)
}
