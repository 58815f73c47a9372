package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// currentItem is the part of an item of GET /devices/current that its tests read.
type currentItem struct {
	DeviceID uuid.UUID                  `json:"device_id"`
	Status   roomsensor.Status          `json:"status"`
	Latest   *reading                   `json:"latest"`
	Last24h  map[string]json.RawMessage `json:"last_24h"`
}

// current returns the only item of GET /devices/current.
func (f *fixture) current(t *testing.T) currentItem {
	t.Helper()
	page := decode[list[currentItem]](t, f.get(t, "/devices/current"))
	require.Len(t, page.Data, 1)
	return page.Data[0]
}

func TestCurrentFields(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 a", "decision 17 b", "decision 17 c", "decision 17 d", "decision 17 f", "spec 4, current, snapshot")
	f := setup(t)
	none := make([]string, roomsensor.MetricCount)
	for m := range none {
		none[m] = fmt.Sprintf(`"%s":{"min":null,"max":null,"mean":null,"count":0}`, roomsensor.Metric(m))
	}
	require.Equal(t, `{"data":[{"device_id":"`+deviceID.String()+`","hardware_id":"dev:1","display_name":null,"metadata":{},"status":"offline",`+
		`"last_seen_at":null,"signal":{"rssi_dbm":null,"bars":null},"active_assignment":null,"latest":null,`+
		`"last_24h":{"from":"2026-11-19T11:00:00Z",`+strings.Join(none, ",")+`}}],"next_cursor":null}`, string(f.get(t, "/devices/current").body))

	f.fillDevice(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, ingested_at) VALUES
		($1, '2026-11-20 09:55Z', 600, 21.4, '2026-11-20 09:56Z'),
		($1, '2026-11-20 09:50Z', 601, NULL, '2026-11-20 09:57Z'),
		($1, '2026-11-19 11:00Z', 602, -0.2, '2026-11-20 09:58Z'),
		($1, '2026-11-19 10:55Z', 9999, 90, '2026-11-20 09:59Z')`, deviceID)
	got := f.get(t, "/devices/current")
	requireGolden(t, "current.json.golden", got.body)
	require.NotContains(t, string(got.body), "firmware_version")
}

// The mean is computed in 64 bits: 32 bits would lose the ones beside 16777216 (decision 17 g).
func TestCurrentMean(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 f", "decision 17 g")
	f := setup(t)
	for i, row := range []string{"16777216, 0.1, NULL, 1e-30", "1, 0.4, NULL, 3e-30", "1, 0.8, 5, NULL", "0, NULL, 5, NULL"} {
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux) VALUES ($1, $2, `+row+`)`,
			deviceID, start.Add(-time.Duration(i*40)*time.Minute))
	}
	got := f.current(t).Last24h
	for metric, want := range map[string]string{
		"co2_ppm":      `{"min":0,"max":16777216,"mean":4194304.5,"count":4}`,
		"temp_c":       `{"min":0.1,"max":0.8,"mean":0.43333334,"count":3}`,
		"humidity_pct": `{"min":5,"max":5,"mean":5,"count":2}`,
		"lux":          `{"min":0.000000000000000000000000000001,"max":0.000000000000000000000000000003,"mean":0.000000000000000000000000000002,"count":2}`,
		"spl_db":       `{"min":null,"max":null,"mean":null,"count":0}`,
	} {
		require.Equal(t, want, string(got[metric]), metric)
	}
}
