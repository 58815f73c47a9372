package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
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

// currentModel holds the stored readings of a team, by device and bucket; a nil value is null.
type currentModel struct {
	*teamModel
	rows map[uuid.UUID]map[time.Time][roomsensor.MetricCount]*float32
}

// drawValue draws a number as sensors send it, or an extreme one. Sums of them are exact in 64 bits, so their order
// cannot matter.
func drawValue(t *rapid.T, name string) *float32 {
	switch rapid.IntRange(0, 9).Draw(t, name) {
	case 0, 1:
		return nil
	case 2:
		return new(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 100_000, -90, 0.1}).Draw(t, name))
	case 3:
		return new(float32(rapid.IntRange(-90<<10, 100_000<<10).Draw(t, name)) / (1 << 10))
	}
	return new(float32(rapid.IntRange(-900, 20_000).Draw(t, name)) / 10)
}

// drawBucket draws a bucket of the last 24 hours or close to their edges.
func drawBucket(t *rapid.T, now time.Time) time.Time {
	hour := now.Truncate(time.Hour).Add(time.Duration(rapid.SampledFrom(
		[]int{-72, -25, -24, -23, -22, -12, -1, 0, 0, 0, 1}).Draw(t, "hour")) * time.Hour)
	return hour.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 6, 10, 11}).Draw(t, "bucket")) * roomsensor.BucketLength)
}

// deliver stores readings of one device, in any order of buckets.
func (m *currentModel) deliver(device uuid.UUID) {
	m.t.Helper()
	var batch pgx.Batch
	for range rapid.IntRange(1, 12).Draw(m.rt, "readings") {
		at, values := drawBucket(m.rt, m.clock.now()), [roomsensor.MetricCount]*float32{}
		for _, metric := range roomsensor.Metrics {
			values[metric] = drawValue(m.rt, metric.String())
		}
		m.rows[device][at] = values
		batch.Queue(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (device_id, bucket_at) DO UPDATE
			SET (co2_ppm, temp_c, humidity_pct, lux, spl_db) = ROW ($3, $4, $5, $6, $7)`,
			device, at, values[0], values[1], values[2], values[3], values[4])
	}
	require.NoError(m.t, m.sql.SendBatch(m.t.Context(), &batch).Close())
}

// refresh materializes what the refresh policy of the Community edition would: all but two days.
func (m *currentModel) refresh() {
	m.t.Helper()
	if dbtest.Edition(m.t) == postgres.Community {
		m.exec(m.t, fmt.Sprintf("CALL refresh_continuous_aggregate('readings_hourly', NULL, '%s'::timestamptz)",
			roomsensor.FormatTime(m.clock.now().AddDate(0, 0, -2))))
	}
}

// printed is a number as the API prints it.
func printed(x float32) any { return json.Number(strconv.FormatFloat(float64(x+0), 'f', -1, 32)) }

// last24h computes last_24h of a device.
func (m *currentModel) last24h(device uuid.UUID) item {
	from := m.clock.now().Truncate(time.Hour).Add(-23 * time.Hour)
	want := item{"from": roomsensor.FormatTime(from)}
	for _, metric := range roomsensor.Metrics {
		var values []float32
		sum := 0.0
		for at, row := range m.rows[device] {
			if x := row[metric]; x != nil && !at.Before(from) && at.Before(from.Add(24*time.Hour)) {
				values = append(values, *x)
				sum += float64(*x)
			}
		}
		stat := item{"min": nil, "max": nil, "mean": nil, "count": json.Number(strconv.Itoa(len(values)))}
		if len(values) > 0 {
			stat["min"], stat["max"] = printed(slices.Min(values)), printed(slices.Max(values))
			stat["mean"] = printed(float32(sum / float64(len(values))))
		}
		want[metric.String()] = stat
	}
	return want
}

// latest computes the latest reading of a device, without its ingested_at.
func (m *currentModel) latest(device uuid.UUID) item {
	var newest time.Time
	for at := range m.rows[device] {
		if at.After(newest) {
			newest = at
		}
	}
	if newest.IsZero() {
		return nil
	}
	want := item{"bucket_at": roomsensor.FormatTime(newest)}
	for _, metric := range roomsensor.Metrics {
		want[metric.String()] = nil
		if x := m.rows[device][newest][metric]; x != nil {
			want[metric.String()] = printed(*x)
		}
	}
	return want
}

// requireCurrent compares GET /devices/current with the model.
func (m *currentModel) requireCurrent() {
	m.t.Helper()
	m.pages++
	got := m.replicas[m.pages%2].get(m.rt, "/devices/current", m.key).requireOK(m.rt)
	var page list[struct {
		DeviceID uuid.UUID `json:"device_id"`
		Latest   item      `json:"latest"`
		Last24h  item      `json:"last_24h"`
	}]
	decoder := json.NewDecoder(bytes.NewReader(got.body))
	decoder.UseNumber()
	require.NoError(m.rt, decoder.Decode(&page))
	require.Len(m.rt, page.Data, len(m.rows))
	for _, i := range page.Data {
		delete(i.Latest, "ingested_at")
		require.Equal(m.rt, m.latest(i.DeviceID), i.Latest)
		require.Equal(m.rt, m.last24h(i.DeviceID), i.Last24h)
	}
}

// latest and last_24h equal arithmetic over the readings, in whatever order they arrive, also at the edges of hours and
// days (decision 17).
func TestCurrentModel(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 b", "decision 17 c", "decision 17 d", "decision 17 f", "decision 17 g", "decision 17 h")
	replicas := setupReplicas(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &currentModel{replicas.emptyTeam(t, rt), map[uuid.UUID]map[time.Time][roomsensor.MetricCount]*float32{}}
		var devices []uuid.UUID
		for range rapid.IntRange(1, 3).Draw(rt, "devices") {
			devices = append(devices, m.newDevice())
			m.rows[devices[len(devices)-1]] = map[time.Time][roomsensor.MetricCount]*float32{}
		}
		for range rapid.IntRange(1, 3).Draw(rt, "bursts") {
			m.deliver(rapid.SampledFrom(devices).Draw(rt, "device"))
			if rapid.Bool().Draw(rt, "refresh") {
				m.refresh()
			}
			m.requireCurrent()
			if minutes := rapid.SampledFrom([]int{0, 0, 1, 59, 60, 61, 1440}).Draw(rt, "minutes"); minutes > 0 {
				m.clock.advance(time.Duration(minutes) * time.Minute)
				m.requireCurrent()
			}
		}
	})
}
