package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/localdb"
	"roomsensor/internal/roomsensor"
)

// row is a stored reading; nil is null.
type row [roomsensor.MetricCount]*float32

// drawValue is a number as a sensor sends it, or one at an edge. All of them add
// up in 64 bits without a rounding, so that the order of a sum cannot matter.
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

// drawBucket is a bucket of the last 24 hours or about their edges.
func drawBucket(t *rapid.T, now time.Time) time.Time {
	hour := now.Truncate(time.Hour).Add(time.Duration(rapid.SampledFrom(
		[]int{-72, -25, -24, -23, -22, -12, -1, 0, 0, 0, 1}).Draw(t, "hour")) * time.Hour)
	return hour.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 6, 10, 11}).Draw(t, "bucket")) * roomsensor.BucketLength)
}

// sky is a scene whose readings are known, by device.
type sky struct {
	*scene
	rows map[uuid.UUID]map[time.Time]row
}

// deliver stores a burst of readings of one device, in any order of buckets.
func (s *sky) deliver(device uuid.UUID) {
	s.t.Helper()
	var batch pgx.Batch
	for range rapid.IntRange(1, 12).Draw(s.rt, "readings") {
		at, values := drawBucket(s.rt, s.clock.now()), row{}
		for _, m := range roomsensor.Metrics {
			values[m] = drawValue(s.rt, m.String())
		}
		s.rows[device][at] = values
		batch.Queue(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (device_id, bucket_at) DO UPDATE
			SET (co2_ppm, temp_c, humidity_pct, lux, spl_db) = ROW ($3, $4, $5, $6, $7)`,
			device, at, values[0], values[1], values[2], values[3], values[4])
	}
	require.NoError(s.t, s.sql.SendBatch(s.t.Context(), &batch).Close())
}

// refresh materialises what the policy on Community would: all but two days.
func (s *sky) refresh() {
	s.t.Helper()
	if dbtest.Edition(s.t) == localdb.Community {
		s.exec(s.t, fmt.Sprintf("CALL refresh_continuous_aggregate('readings_hourly', NULL, '%s'::timestamptz)",
			roomsensor.FormatTime(s.clock.now().AddDate(0, 0, -2))))
	}
}

// printed is a number as the API prints it.
func printed(x float32) any { return json.Number(strconv.FormatFloat(float64(x+0), 'f', -1, 32)) }

// summary is last_24h by plain arithmetic over the readings.
func (s *sky) summary(device uuid.UUID) map[string]any {
	from := s.clock.now().Truncate(time.Hour).Add(-23 * time.Hour)
	want := map[string]any{"from": roomsensor.FormatTime(from)}
	for _, m := range roomsensor.Metrics {
		var values []float32
		sum := 0.0
		for at, row := range s.rows[device] {
			if x := row[m]; x != nil && !at.Before(from) && at.Before(from.Add(24*time.Hour)) {
				values = append(values, *x)
				sum += float64(*x)
			}
		}
		stat := map[string]any{"min": nil, "max": nil, "mean": nil, "count": json.Number(strconv.Itoa(len(values)))}
		if len(values) > 0 {
			stat["min"], stat["max"] = printed(slices.Min(values)), printed(slices.Max(values))
			stat["mean"] = printed(float32(sum / float64(len(values))))
		}
		want[m.String()] = stat
	}
	return want
}

// latest is the reading of the greatest bucket, without its ingested_at.
func (s *sky) latest(device uuid.UUID) map[string]any {
	var newest time.Time
	for at := range s.rows[device] {
		if at.After(newest) {
			newest = at
		}
	}
	if newest.IsZero() {
		return nil
	}
	want := map[string]any{"bucket_at": roomsensor.FormatTime(newest)}
	for _, m := range roomsensor.Metrics {
		want[m.String()] = nil
		if x := s.rows[device][newest][m]; x != nil {
			want[m.String()] = printed(*x)
		}
	}
	return want
}

// requireCurrent holds the snapshot to the model.
func (s *sky) requireCurrent() {
	s.t.Helper()
	s.pages++
	got := s.replicas[s.pages%2].do(s.t, http.MethodGet, "/v1/devices/current", "", withKey(s.key))
	require.Equal(s.rt, http.StatusOK, got.status)
	var page list[struct {
		DeviceID uuid.UUID      `json:"device_id"`
		Latest   map[string]any `json:"latest"`
		Last24h  map[string]any `json:"last_24h"`
	}]
	decoder := json.NewDecoder(bytes.NewReader(got.body))
	decoder.UseNumber()
	require.NoError(s.rt, decoder.Decode(&page))
	require.Len(s.rt, page.Data, len(s.rows))
	for _, item := range page.Data {
		delete(item.Latest, "ingested_at")
		require.Equal(s.rt, s.latest(item.DeviceID), item.Latest)
		require.Equal(s.rt, s.summary(item.DeviceID), item.Last24h)
	}
}

// Decision 17: latest is the newest bucket whatever arrives last, and last_24h
// is what the readings come to, at the edges of hours and of the day too.
func TestCurrentIsWhatTheReadingsSay(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.2", "decision 17.3", "decision 17.4", "decision 17.6", "decision 17.7")
	stage := setupStage(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := &sky{stage.empty(t, rt), map[uuid.UUID]map[time.Time]row{}}
		var devices []uuid.UUID
		for range rapid.IntRange(1, 3).Draw(rt, "devices") {
			devices = append(devices, s.newDevice())
			s.rows[devices[len(devices)-1]] = map[time.Time]row{}
		}
		for range rapid.IntRange(1, 3).Draw(rt, "bursts") {
			s.deliver(rapid.SampledFrom(devices).Draw(rt, "device"))
			if rapid.Bool().Draw(rt, "refresh") {
				s.refresh()
			}
			s.requireCurrent()
			if minutes := rapid.SampledFrom([]int{0, 0, 1, 59, 60, 61, 1440}).Draw(rt, "minutes"); minutes > 0 {
				s.clock.advance(time.Duration(minutes) * time.Minute)
				s.requireCurrent()
			}
		}
	})
}
