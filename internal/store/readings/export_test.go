package readings_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/readings"
)

// TestExportCancel checks that an export whose context ends leaves no query (reliability, HTTP).
func TestExportCancel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Readings.Limits.SliceRows = sliceRows
	devices := []uuid.UUID{f.DeviceID}
	for i := range 7 {
		devices = append(devices, f.NewDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.Fill(t, fullBuckets, devices...) // Four slices, of which three are queried when the context ends.
	e, err := f.OpenExport(t.Context(), f.TeamID, roomsensor.ExportQuery{Window: days(90), Devices: devices})
	require.NoError(t, err)
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err = e.Each(ctx, func(*roomsensor.ExportRow) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return f.running(t.Context(), t) == 0 }, patience, time.Millisecond)
}

// running counts the transactions of exports that are open.
func (f *fixture) running(ctx context.Context, t require.TestingT) (n int) {
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE '%export%' AND xact_start IS NOT NULL`).Scan(&n))
	return n
}

// TestExportOfASlowClient checks that the transaction ends although the client has not taken the first row yet, which
// holds back the cleanup of dead rows in the whole database otherwise (reliability, database, rule 9).
func TestExportOfASlowClient(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fillFleet(t)
	e, err := f.OpenExport(t.Context(), f.TeamID, roomsensor.ExportQuery{Window: days(90), Devices: devices})
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, 1, f.running(t.Context(), t))
	rows := 0
	require.NoError(t, e.Each(t.Context(), func(*roomsensor.ExportRow) error {
		if rows++; rows == 1 {
			require.Eventually(t, func() bool { return f.running(t.Context(), t) == 0 }, patience, time.Millisecond)
		}
		return nil
	}))
	require.Equal(t, e.Rows(), rows)
}

// TestExportFailure checks that Each fails if it cannot read all rows: an export must not look complete.
func TestExportFailure(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fillFleet(t)
	read := func(before func()) error {
		e, err := f.OpenExport(t.Context(), f.TeamID, roomsensor.ExportQuery{Window: days(90), Devices: devices})
		require.NoError(t, err)
		defer e.Close()
		before()
		return e.Each(t.Context(), func(*roomsensor.ExportRow) error { return nil })
	}
	require.Error(t, read(func() {
		f.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE '%export%'`)
	}), "the database is lost")
	require.NoError(t, read(func() {}))
	f.Readings.Limits.ExportTime = time.Nanosecond
	require.ErrorIs(t, read(func() {}), context.DeadlineExceeded, "the database is too slow")
	// The server takes a moment to notice that the connection was closed.
	require.Eventually(t, func() bool { return f.running(t.Context(), t) == 0 }, patience, time.Millisecond)
}

// Slices in these tests are smaller than those of the service, so that less data is needed for several of them. Four
// devices with fullBuckets readings each, which cover 3.5 days, are two slices.
const (
	sliceRows   = 2_500
	fullBuckets = 1_000
)

// buckets returns the window of the first n buckets.
func buckets(n int) roomsensor.Window {
	return roomsensor.Window{From: exportFrom, To: exportFrom.Add(time.Duration(n) * roomsensor.BucketLength)}
}

// fillFleet sets the size of slices, fills fullBuckets of four devices, and returns the devices.
func (f *fixture) fillFleet(t *testing.T) []uuid.UUID {
	t.Helper()
	f.Readings.Limits.SliceRows = sliceRows
	devices := []uuid.UUID{f.DeviceID}
	for i := range 3 {
		devices = append(devices, f.NewDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.Fill(t, fullBuckets, devices...)
	return devices
}

// TestExportSlices checks which window is cut into slices: the one of the query if rows fill at least half of it, and
// otherwise the interval of the rows. Either way, a slice has at most twice its target number of rows.
func TestExportSlices(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fillFleet(t)
	silent := slices.Clone(devices)
	for i := range 5 {
		silent = append(silent, f.NewDevice(t, fmt.Sprint("dev:", 5+i)))
	}
	last := exportFrom.Add(fullBuckets * roomsensor.BucketLength)
	open := roomsensor.Window{From: exportFrom.AddDate(-1, 0, 0), To: roomsensor.Forever}
	rows := roomsensor.Window{From: exportFrom, To: last}
	for name, tc := range map[string]struct {
		window, cut roomsensor.Window
		devices     []uuid.UUID
		slices      int
	}{
		"full":                   {rows, rows, devices, 2},
		"more than half":         {buckets(1_980), buckets(1_980), devices, 2},
		"less than half":         {buckets(2_020), rows, devices, 2},
		"half of the devices":    {buckets(990), buckets(990), silent[:8], 2},
		"few of the devices":     {buckets(1_010), rows, silent, 2},
		"years around":           {roomsensor.Window{From: exportFrom.AddDate(-50, 0, 0), To: exportFrom.AddDate(50, 0, 0)}, rows, devices, 2},
		"without end":            {open, rows, devices, 2},
		"without start":          {roomsensor.Window{To: roomsensor.Forever}, rows, devices, 2},
		"one slice":              {days(365), days(365), devices[:2], 1},
		"one slice, without end": {open, rows, devices[:2], 1},
		"no rows, without end":   {roomsensor.Window{From: last, To: roomsensor.Forever}, roomsensor.Window{}, devices, 0},
	} {
		for _, lines := range []bool{false, true} {
			e, err := f.OpenExport(t.Context(), f.TeamID, roomsensor.ExportQuery{Window: tc.window, Devices: tc.devices, Lines: lines})
			require.NoError(t, err)
			cut := readings.Slices(e)
			e.Close()
			require.Len(t, cut, tc.slices, name)
			if len(cut) == 0 {
				continue
			}
			want := tc.cut
			if lines { // Counting the lines returns the interval of the rows.
				want = tc.window.Intersect(rows)
			}
			require.True(t, want.From.Equal(cut[0].From), "%s: from %s", name, cut[0].From)
			require.True(t, want.To.Equal(cut[len(cut)-1].To), "%s: until %s", name, cut[len(cut)-1].To)
			for _, w := range cut {
				require.LessOrEqual(t, f.rowsIn(t, tc.devices, w), 2*sliceRows+len(tc.devices), name)
			}
		}
	}
}

func (f *fixture) rowsIn(t *testing.T, devices []uuid.UUID, w roomsensor.Window) (n int) {
	t.Helper()
	require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT count(*) FROM readings
		WHERE device_id = ANY($1) AND bucket_at >= $2 AND bucket_at < $3`, devices, w.From, w.To).Scan(&n))
	return n
}

// readingKey is the primary key of a reading, and when it was ingested.
type readingKey struct {
	Device   uuid.UUID
	At       time.Time
	Ingested time.Time
}

// readingKeys returns the keys of all readings, in the order of an export.
func (f *fixture) readingKeys(t *testing.T) []readingKey {
	t.Helper()
	rows, err := f.SQL.Query(t.Context(), `SELECT device_id, bucket_at, ingested_at FROM readings ORDER BY bucket_at, device_id`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[readingKey])
	require.NoError(t, err)
	return all
}

// TestExportSlicesProperty checks that an export of any devices and window has the rows of one ordered query, and the
// same counts, whether its readings are dense or sparse; and the ingested_at of each row if the query asks for it.
func TestExportSlicesProperty(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fillFleet(t)
	// Single readings years apart, and a device with few readings.
	quiet := f.NewDevice(t, "dev:5")
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at)
		SELECT d, $2::timestamptz + n * INTERVAL '500 days' FROM unnest($1::uuid[]) d, generate_series(-3, 3) n
		ON CONFLICT DO NOTHING`, append(slices.Clone(devices), quiet), exportFrom.Add(roomsensor.BucketLength))
	devices = append(devices, quiet)
	f.Exec(t, `UPDATE readings SET ingested_at = bucket_at + hashtext(device_id::text) % 1000000 * INTERVAL '1 microsecond'`)
	all := f.readingKeys(t)
	cut := map[bool]int{} // exports of several slices, by whether the window was cut unchanged
	rapid.Check(t, func(rt *rapid.T) {
		q := roomsensor.ExportQuery{
			Window: drawWindow(rt), Lines: rapid.Bool().Draw(rt, "lines"), IngestedAt: rapid.Bool().Draw(rt, "ingested_at"),
			Devices: rapid.Permutation(devices).Draw(rt, "devices")[rapid.SampledFrom([]int{0, 1, 1, 2, 4}).Draw(rt, "left out"):],
		}
		want := selectKeys(all, q)
		e, err := f.OpenExport(t.Context(), f.TeamID, q)
		require.NoError(rt, err)
		defer e.Close()
		require.Equal(rt, len(want), e.Rows())
		if q.Lines {
			require.Equal(rt, linesOf(want), e.Lines())
		}
		if w := readings.Slices(e); len(w) > 1 && !q.Lines {
			cut[w[0].From.Equal(q.Window.From)]++
		}
		require.NoError(rt, requireKeys(t.Context(), e, want, q.IngestedAt))
		q.CountOnly = true
		counted, err := f.OpenExport(t.Context(), f.TeamID, q)
		require.NoError(rt, err)
		defer counted.Close()
		require.Equal(rt, []int{e.Rows(), e.Lines()}, []int{counted.Rows(), counted.Lines()})
	})
	require.Positive(t, cut[true], "no dense export had several slices")
	require.Positive(t, cut[false], "no sparse export had several slices")
}

// requireKeys returns an error unless the rows of an export have some keys, in order, and their times of ingestion or
// none.
func requireKeys(ctx context.Context, e roomsensor.ReadingExport, want []readingKey, ingestedAt bool) error {
	n := 0
	err := e.Each(ctx, func(row *roomsensor.ExportRow) error {
		if n == len(want) || want[n].Device != row.DeviceID || !want[n].At.Equal(row.BucketAt) {
			return fmt.Errorf("row %d is %s at %s", n, row.DeviceID, row.BucketAt)
		}
		if ingestedAt != want[n].Ingested.Equal(row.IngestedAt) || ingestedAt == row.IngestedAt.IsZero() {
			return fmt.Errorf("row %d was ingested at %s, read as %s", n, want[n].Ingested, row.IngestedAt)
		}
		n++
		return nil
	})
	if err == nil && n != len(want) {
		err = fmt.Errorf("%d rows instead of %d", n, len(want))
	}
	return err
}

// drawWindow draws a start and an end near the dense readings, years away from them, or unbounded.
func drawWindow(rt *rapid.T) roomsensor.Window {
	inward := rapid.Int64Range(0, int64(4*24*time.Hour/time.Microsecond))
	edge := func(name string, outermost time.Time, sign int, none time.Time) time.Time {
		// rapid prefers small numbers, so that many windows contain most of the readings.
		at := outermost.Add(-time.Duration(int64(sign)*inward.Draw(rt, name)) * time.Microsecond)
		switch rapid.SampledFrom([]string{"near", "near", "near", "far", "none"}).Draw(rt, name+" is") {
		case "far":
			return at.AddDate(sign*rapid.IntRange(1, 6).Draw(rt, name+" years"), 0, 0)
		case "none":
			return none
		default:
			return at
		}
	}
	w := roomsensor.Window{
		From: edge("from", exportFrom.Add(-12*time.Hour), -1, time.Time{}),
		To:   edge("to", exportFrom.AddDate(0, 0, 4), 1, roomsensor.Forever),
	}
	if w.To.Before(w.From) {
		w.From, w.To = w.To, w.From
	}
	return w
}

// selectKeys returns the keys that a query selects.
func selectKeys(all []readingKey, q roomsensor.ExportQuery) []readingKey {
	var keys []readingKey
	for _, p := range all {
		if slices.Contains(q.Devices, p.Device) && !p.At.Before(q.Window.From) && p.At.Before(q.Window.To) {
			keys = append(keys, p)
		}
	}
	return keys
}

// linesOf counts the distinct buckets of ordered keys.
func linesOf(ordered []readingKey) int {
	return len(slices.CompactFunc(slices.Clone(ordered), func(a, b readingKey) bool { return a.At.Equal(b.At) }))
}

// TestExportSlicesEdges compares exports with one ordered query: unbounded windows with a reading centuries away, more
// devices than two pipelined queries can name, and devices that are named twice.
func TestExportSlicesEdges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Readings.Limits.SliceRows = sliceRows
	devices := []uuid.UUID{f.DeviceID}
	for i := range 6 {
		devices = append(devices, f.NewDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.Fill(t, fullBuckets, devices...) // Three slices.
	f.Exec(t, `DELETE FROM readings WHERE device_id = $1 AND bucket_at > $2`, f.DeviceID, exportFrom.AddDate(0, 0, 1))
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at) SELECT unnest($1::uuid[]), $2`, devices, exportFrom.AddDate(0, 0, 89))
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2)`, f.DeviceID, exportFrom.AddDate(300, 0, 0))

	f.Exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:8' FROM generate_series(1, 7000)`, f.TeamID)
	team, err := f.DeviceNames(t.Context(), f.TeamID)
	require.NoError(t, err)
	var many []uuid.UUID // Too many for two queries to be sent at once.
	for _, d := range team {
		many = append(many, d.ID)
	}

	all := f.readingKeys(t)
	for name, q := range map[string]roomsensor.ExportQuery{
		"without end": {Window: roomsensor.Window{To: roomsensor.Forever}, Devices: devices},
		"many":        {Window: days(90), Devices: many},
		"named twice": {Window: days(90), Devices: slices.Repeat(devices, 2)},
	} {
		want := selectKeys(all, q)
		e, err := f.OpenExport(t.Context(), f.TeamID, q)
		require.NoError(t, err)
		t.Cleanup(e.Close)
		require.Equal(t, len(want), e.Rows(), name)
		require.NoError(t, requireKeys(t.Context(), e, want, q.IngestedAt), name)
	}
}
