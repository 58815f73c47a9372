package readings_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/completeness"
	"roomsensor/internal/timezone"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// clockChanges are days on which clocks of the zones below change, and one without a change.
var clockChanges = []string{
	"2026-03-08", "2026-03-29", "2026-04-05", "2026-07-01", // New York, Berlin, Lord Howe
	"2025-10-05", "2025-10-26", "2025-11-02", // Lord Howe, Berlin, New York
}

var aggregateZones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"}

// aggregateModel has the readings of some devices in memory, and computes what aggregates of them must be.
type aggregateModel struct {
	*fixture
	devices []uuid.UUID // ascending
	rows    map[uuid.UUID]map[time.Time]roomsensor.Values
	units   map[uuid.UUID][]roomsensor.Installation
}

func newAggregateModel(t *testing.T) *aggregateModel {
	t.Helper()
	m := &aggregateModel{fixture: setup(t)}
	m.devices = []uuid.UUID{m.DeviceID, m.NewDevice(t, "dev:2"), m.NewDevice(t, "dev:3")}
	slices.SortFunc(m.devices, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, date := range clockChanges {
		m.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			SELECT d, b, 400 + n % 97, CASE WHEN n % 5 <> 0 THEN ((n * 37) % 400 - 150) / 10.0 END, 40 + (n * 7 % 31) / 3.0,
			       CASE WHEN n % 288 > 140 THEN (n * 13 % 10007) / 100.0 ELSE 0 END, CASE WHEN n % 3 = 0 THEN 38.2 END
			FROM unnest($1::uuid[]) WITH ORDINALITY u (d, i),
			     generate_series($2::timestamptz - INTERVAL '3 days', $2::timestamptz + INTERVAL '4 days', INTERVAL '5 minutes')
			         WITH ORDINALITY g (b, n)
			WHERE (n * 7919 + i * 104729) % 11 > i ON CONFLICT DO NOTHING`, m.devices, date+" 00:00:00Z")
	}
	m.Exec(t, `UPDATE device_hardware SET installed_at = '2026-03-28 10:32Z', removed_at = '2026-04-06 07:14Z' WHERE device_id = $1`, m.devices[1])
	m.Exec(t, `INSERT INTO device_hardware (hardware_id, device_id, installed_at, removed_at) VALUES
		('dev:7', $1, '2025-10-26 11:58Z', '2026-03-28 10:32Z')`, m.devices[1])
	m.load(t.Context(), t)
	return m
}

// load reads all rows.
func (m *aggregateModel) load(ctx context.Context, t require.TestingT) {
	m.rows, m.units = map[uuid.UUID]map[time.Time]roomsensor.Values{}, map[uuid.UUID][]roomsensor.Installation{}
	rows, err := m.SQL.Query(ctx, `SELECT device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db FROM readings`)
	require.NoError(t, err)
	var id uuid.UUID
	var bucket time.Time
	var x [roomsensor.MetricCount]*float32
	_, err = pgx.ForEachRow(rows, []any{&id, &bucket, &x[0], &x[1], &x[2], &x[3], &x[4]}, func() error {
		var values roomsensor.Values
		for i := range x {
			if x[i] != nil {
				values.Set(roomsensor.Metric(i), *x[i])
			}
		}
		if m.rows[id] == nil {
			m.rows[id] = map[time.Time]roomsensor.Values{}
		}
		m.rows[id][bucket.UTC()] = values
		return nil
	})
	require.NoError(t, err)
	rows, err = m.SQL.Query(ctx, `SELECT device_id, installed_at, removed_at FROM device_hardware`)
	require.NoError(t, err)
	var unit roomsensor.Installation
	_, err = pgx.ForEachRow(rows, []any{&id, &unit.From, &unit.To}, func() error {
		m.units[id] = append(m.units[id], unit)
		return nil
	})
	require.NoError(t, err)
}

// aggregate computes an aggregate with plain arithmetic over the readings (A1.6, A1.7).
func (m *aggregateModel) aggregate(device uuid.UUID, bucket, window roomsensor.Window, now time.Time) aggregate.Aggregate {
	a := aggregate.Aggregate{Bucket: bucket}
	part := bucket.Intersect(window)
	expected := completeness.Expected(window, m.units[device], now)
	sums := [roomsensor.MetricCount]*big.Rat{}
	for at := part.From.Truncate(roomsensor.BucketLength); at.Before(part.To); at = at.Add(roomsensor.BucketLength) {
		if at.Before(part.From) {
			continue
		}
		values, present := m.rows[device][at]
		if expected.Contains(at) {
			a.Expected++
			if present {
				a.Present++
			}
		}
		for _, metric := range roomsensor.Metrics {
			x, ok := values.Get(metric)
			if !ok {
				continue
			}
			s := &a.Metrics[metric]
			if s.Count++; s.Count == 1 {
				s.Min, s.Max, sums[metric] = x, x, new(big.Rat)
			}
			s.Min, s.Max = min(s.Min, x), max(s.Max, x)
			sums[metric].Add(sums[metric], new(big.Rat).SetFloat64(float64(x)))
		}
	}
	for i, sum := range sums {
		if sum != nil {
			rounded, _ := sum.Float64()
			a.Metrics[i].Mean = float32(rounded / float64(a.Metrics[i].Count))
		}
	}
	return a
}

// hasReadings reports whether a device has a reading in the part of a window inside a bucket.
func (m *aggregateModel) hasReadings(device uuid.UUID, bucket, window roomsensor.Window) bool {
	part := bucket.Intersect(window)
	for at := range m.rows[device] {
		if part.Contains(at) {
			return true
		}
	}
	return false
}

// storeHours makes readings_hourly store hours, as a refresh does. The view of the Apache edition stores none; it counts
// as having stored those of some random ranges.
func (m *aggregateModel) storeHours(t *testing.T, rt *rapid.T) {
	t.Helper()
	until := at("2025-10-01T00:00:00Z").Add(time.Duration(rapid.IntRange(0, 24*300).Draw(rt, "stored")) * time.Hour)
	if dbtest.Edition(t) == postgres.Community {
		m.Exec(t, fmt.Sprintf("CALL refresh_continuous_aggregate('readings_hourly', NULL, '%s'::timestamptz)", roomsensor.FormatTime(until)))
		return
	}
	edges := rapid.SliceOfNDistinct(rapid.IntRange(0, 24*300), 0, 12, rapid.ID).Draw(rt, "valid")
	slices.Sort(edges)
	values := "NULL::timestamptz, NULL::timestamptz WHERE false"
	for pair := range slices.Chunk(edges, 2) {
		if len(pair) == 2 {
			hour := func(i int) string {
				return "'" + roomsensor.FormatTime(at("2025-10-01T00:00:00Z").Add(time.Duration(pair[i])*time.Hour)) + "'::timestamptz"
			}
			values += " UNION ALL SELECT " + hour(0) + ", " + hour(1)
		}
	}
	m.Exec(t, `CREATE OR REPLACE FUNCTION readings_hourly_valid(window_from timestamptz, window_to timestamptz)
		RETURNS TABLE (hours_from timestamptz, hours_to timestamptz) STABLE LANGUAGE sql AS
		$$ SELECT greatest(v.a, date_trunc('hour', window_from + INTERVAL '3599.999999 s', 'UTC')), least(v.b, date_trunc('hour', window_to, 'UTC'))
		   FROM (SELECT `+values+`) v (a, b) WHERE v.a < window_to AND v.b > window_from + INTERVAL '1 hour'
		     AND greatest(v.a, date_trunc('hour', window_from + INTERVAL '3599.999999 s', 'UTC')) < least(v.b, date_trunc('hour', window_to, 'UTC')) ORDER BY 1 $$`)
}

// deliverLate stores readings into hours that may be stored, changes some, and deletes some.
func (m *aggregateModel) deliverLate(t *testing.T, rt *rapid.T) {
	t.Helper()
	from := at(rapid.SampledFrom(clockChanges).Draw(rt, "late") + "T00:00:00Z").Add(-time.Duration(rapid.IntRange(-1000, 1000).Draw(rt, "offset")) * roomsensor.BucketLength)
	to := from.Add(time.Duration(rapid.IntRange(1, 400).Draw(rt, "length")) * roomsensor.BucketLength)
	device := rapid.SampledFrom(m.devices).Draw(rt, "device")
	value := rapid.SampledFrom([]string{"1e-30", "3.3", "-2.5", "1e20", "'NaN'", "'-Infinity'", "NULL"}).Draw(rt, "value")
	switch rapid.SampledFrom([]string{"insert", "insert", "update", "delete"}).Draw(rt, "change") {
	case "insert":
		m.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
			SELECT $1, b, 7, `+value+` FROM generate_series($2::timestamptz, $3, INTERVAL '15 minutes') b
			ON CONFLICT (device_id, bucket_at) DO UPDATE SET temp_c = excluded.temp_c`, device, from, to)
	case "update":
		m.Exec(t, `UPDATE readings SET lux = `+value+` WHERE device_id = $1 AND bucket_at >= $2 AND bucket_at < $3`, device, from, to)
	case "delete":
		m.Exec(t, `DELETE FROM readings WHERE device_id = $1 AND bucket_at >= $2 AND bucket_at < $3`, device, from, to)
	}
	m.load(t.Context(), rt)
}

// drawQuery draws a window near a change of clocks, its buckets, and an instant.
func drawQuery(rt *rapid.T) (w roomsensor.Window, calendar aggregate.Calendar, now time.Time) {
	zone, _ := timezone.Load(rapid.SampledFrom(aggregateZones).Draw(rt, "zone"))
	calendar = aggregate.NewCalendar(rapid.SampledFrom([]aggregate.Interval{aggregate.Hourly, aggregate.Daily}).Draw(rt, "interval"), zone)
	date := at(rapid.SampledFrom(clockChanges).Draw(rt, "date") + "T00:00:00Z")
	edge := func(name string, least, most int) time.Time {
		minutes := rapid.IntRange(least, most).Draw(rt, name)
		step := rapid.SampledFrom([]int{1, 5, 60, 60 * 24}).Draw(rt, name+" step")
		return date.Add(time.Duration(minutes/step*step)*time.Minute + time.Duration(rapid.SampledFrom([]int{0, 0, 1}).Draw(rt, name+" µs"))*time.Microsecond)
	}
	w = roomsensor.Window{From: edge("from", -4*24*60, 4*24*60-1), To: edge("to", -4*24*60, 5*24*60)}
	if !w.From.Before(w.To) {
		w.To = w.From.Add(time.Duration(rapid.IntRange(1, 2*24*60).Draw(rt, "minutes")) * time.Minute)
	}
	return w, calendar, edge("now", -4*24*60, 30*24*60)
}

// TestAggregatesProperty compares aggregates of any window, interval and zone with plain arithmetic over the readings:
// across changes of clocks, after late bursts, changes and deletions, and whichever hours readings_hourly has stored.
func TestAggregatesProperty(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.3", "A1.5", "A1.6", "A1.7", "A1.8", "A2.2")
	m := newAggregateModel(t)
	m.Readings.Limits.AggregateCells, m.Readings.Limits.StatementReadings = 50, 1
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.Bool().Draw(rt, "store hours") {
			m.storeHours(t, rt)
		}
		if rapid.Bool().Draw(rt, "deliver late") {
			m.deliverLate(t, rt)
		}
		w, calendar, now := drawQuery(rt)
		buckets := calendar.Newest(w, math.MaxInt)
		for _, device := range m.devices {
			got, err := m.DeviceAggregates(t.Context(), m.TeamID, device, aggregate.Query{Window: w, Buckets: buckets, Now: now})
			require.NoError(rt, err)
			require.Len(rt, got, len(buckets))
			for i, bucket := range buckets {
				require.Equal(rt, m.aggregate(device, bucket, w, now), got[i], "%s at %s", device, bucket.From)
			}
		}
		m.requireExport(t.Context(), rt, aggregate.ExportQuery{
			Window: w, Calendar: calendar, Now: now, Metrics: roomsensor.Metrics[:], Fill: rapid.Bool().Draw(rt, "fill"),
			Devices: m.devices[:rapid.IntRange(0, len(m.devices)).Draw(rt, "devices")],
		})
	})
}

// requireExport compares the lines of an export with the model.
func (m *aggregateModel) requireExport(ctx context.Context, t require.TestingT, q aggregate.ExportQuery) {
	var want []aggregate.Row
	for bucket := range q.Calendar.Buckets(q.Window) {
		for _, device := range q.Devices {
			if q.Fill || m.hasReadings(device, bucket, q.Window) {
				want = append(want, aggregate.Row{Aggregate: m.aggregate(device, bucket, q.Window, q.Now), DeviceID: device})
			}
		}
	}
	e, err := m.OpenAggregates(ctx, m.TeamID, q)
	require.NoError(t, err)
	var got []aggregate.Row
	require.NoError(t, e.Each(ctx, func(row *aggregate.Row) error { got = append(got, *row); return nil }))
	require.Equal(t, len(got), e.Rows())
	require.Equal(t, want, got)
	q.CountOnly = true
	counted, err := m.OpenAggregates(ctx, m.TeamID, q)
	require.NoError(t, err)
	require.Equal(t, len(want), counted.Rows())
}

// TestAggregatesEarlyEnd checks that a slow database makes a page shorter, and that a page has at least one part.
func TestAggregatesEarlyEnd(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A1.5")
	f := setup(t)
	f.Fill(t, fullBuckets, f.DeviceID)
	w := roomsensor.Window{From: exportFrom.AddDate(0, 0, -396), To: exportFrom.AddDate(0, 0, 4)}
	q := aggregate.Query{
		Window: w, Buckets: aggregate.NewCalendar(aggregate.Daily, time.UTC).Newest(w, math.MaxInt), Now: w.To,
	}
	whole, err := f.DeviceAggregates(t.Context(), f.TeamID, f.DeviceID, q)
	require.NoError(t, err)
	require.Len(t, whole, 400)
	f.Readings.Limits.AggregateTime = 0
	short, err := f.DeviceAggregates(t.Context(), f.TeamID, f.DeviceID, q)
	require.NoError(t, err)
	require.Equal(t, whole[:104], short, "30,000 readings")

	_, err = f.DeviceAggregates(t.Context(), f.TeamID, uuid.New(), q)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	_, err = f.DeviceAggregates(t.Context(), other.ID, f.DeviceID, q)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	lines, err := f.OpenAggregates(t.Context(), other.ID, aggregate.ExportQuery{
		Window: w, Calendar: aggregate.NewCalendar(aggregate.Daily, time.UTC), Devices: []uuid.UUID{f.DeviceID}, Fill: true, Now: w.To,
	})
	require.NoError(t, err)
	require.Zero(t, lines.Rows())
}
