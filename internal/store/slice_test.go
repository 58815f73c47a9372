package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// fleet gives four devices 20,000 buckets each, which is 69 days and two slices, and returns the devices.
func (f *fixture) fleet(t *testing.T) []uuid.UUID {
	t.Helper()
	devices := []uuid.UUID{f.device}
	for i := range 3 {
		devices = append(devices, f.newDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.fill(t, 20_000, devices...)
	return devices
}

// Rows that fill at least half of a window are cut by the window, others by where they lie; either way a slice has at
// most twice the rows that it should have.
func TestSlicesAreOfTheWindowOrOfItsRows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fleet(t)
	silent := slices.Clone(devices)
	for i := range 5 {
		silent = append(silent, f.newDevice(t, fmt.Sprint("dev:", 5+i)))
	}
	last := exportFrom.Add(20_000 * roomsensor.BucketLength)
	open := roomsensor.Window{From: exportFrom.AddDate(-1, 0, 0), To: roomsensor.Forever}
	rows := roomsensor.Window{From: exportFrom, To: last}
	for name, tc := range map[string]struct {
		window, cut roomsensor.Window
		devices     []uuid.UUID
		slices      int
	}{
		"full":                   {rows, rows, devices, 2},
		"more than half":         {days(138), days(138), devices, 2},
		"less than half":         {days(140), rows, devices, 2},
		"half of the devices":    {days(69), days(69), silent[:8], 2},
		"few of the devices":     {days(70), rows, silent, 2},
		"years around":           {roomsensor.Window{From: exportFrom.AddDate(-50, 0, 0), To: exportFrom.AddDate(50, 0, 0)}, rows, devices, 2},
		"without end":            {open, rows, devices, 2},
		"without start":          {roomsensor.Window{To: roomsensor.Forever}, rows, devices, 2},
		"one slice":              {days(365), days(365), devices[:2], 1},
		"one slice, without end": {open, rows, devices[:2], 1},
		"no rows, without end":   {roomsensor.Window{From: last, To: roomsensor.Forever}, roomsensor.Window{}, devices, 0},
	} {
		for _, lines := range []bool{false, true} {
			e, err := f.Export(t.Context(), f.team, roomsensor.ExportQuery{Window: tc.window, Devices: tc.devices, Lines: lines})
			require.NoError(t, err)
			cut := e.Slices()
			e.Close()
			require.Len(t, cut, tc.slices, name)
			if len(cut) == 0 {
				continue
			}
			want := tc.cut
			if lines { // The lines tell where they lie.
				want = tc.window.Intersect(rows)
			}
			require.True(t, want.From.Equal(cut[0].From), "%s: from %s", name, cut[0].From)
			require.True(t, want.To.Equal(cut[len(cut)-1].To), "%s: until %s", name, cut[len(cut)-1].To)
			for _, w := range cut {
				require.LessOrEqual(t, f.rowsIn(t, tc.devices, w), 2*store.SliceRows+len(tc.devices), name)
			}
		}
	}
}

func (f *fixture) rowsIn(t *testing.T, devices []uuid.UUID, w roomsensor.Window) (n int) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `SELECT count(*) FROM readings
		WHERE device_id = ANY($1) AND bucket_at >= $2 AND bucket_at < $3`, devices, w.From, w.To).Scan(&n))
	return n
}

// place is where a reading lies.
type place struct {
	Device uuid.UUID
	At     time.Time
}

// places are where all readings lie, in the order of an export.
func (f *fixture) places(t *testing.T) []place {
	t.Helper()
	rows, err := f.sql.Query(t.Context(), `SELECT device_id, bucket_at FROM readings ORDER BY bucket_at, device_id`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
	require.NoError(t, err)
	return all
}

// Whichever devices and window an export selects, and however thin its rows lie there, its slices are together what one
// ordered query gives; its counts are of the same.
func TestSlicesAreTheOrderedRowsAtAnyDensity(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := f.fleet(t)
	// Lone readings years apart, and a device that is mostly silent.
	quiet := f.newDevice(t, "dev:5")
	f.exec(t, `INSERT INTO readings (device_id, bucket_at)
		SELECT d, $2::timestamptz + n * INTERVAL '500 days' FROM unnest($1::uuid[]) d, generate_series(-3, 3) n
		ON CONFLICT DO NOTHING`, append(slices.Clone(devices), quiet), exportFrom.Add(roomsensor.BucketLength))
	devices = append(devices, quiet)
	all := f.places(t)
	cut := map[bool]int{} // exports of several slices, by whether the window was cut as it is
	rapid.Check(t, func(rt *rapid.T) {
		q := roomsensor.ExportQuery{
			Window: drawWindow(rt), Lines: rapid.Bool().Draw(rt, "lines"),
			Devices: rapid.Permutation(devices).Draw(rt, "devices")[rapid.SampledFrom([]int{0, 1, 1, 2, 4}).Draw(rt, "left out"):],
		}
		want := selected(all, q)
		e, err := f.Export(t.Context(), f.team, q)
		require.NoError(rt, err)
		defer e.Close()
		require.Equal(rt, len(want), e.Rows())
		if q.Lines {
			require.Equal(rt, linesOf(want), e.Lines())
		}
		if w := e.Slices(); len(w) > 1 && !q.Lines {
			cut[w[0].From.Equal(q.Window.From)]++
		}
		n := 0
		require.NoError(rt, e.Each(t.Context(), func(row *roomsensor.ExportRow) error {
			if n == len(want) || want[n].Device != row.DeviceID || !want[n].At.Equal(row.BucketAt) {
				return fmt.Errorf("row %d is %s at %s", n, row.DeviceID, row.BucketAt)
			}
			n++
			return nil
		}))
		require.Equal(rt, len(want), n)
	})
	require.Positive(t, cut[true], "no dense export had several slices")
	require.Positive(t, cut[false], "no sparse export had several slices")
}

// drawWindow draws a start and an end near the dense readings, years away from them, or none.
func drawWindow(rt *rapid.T) roomsensor.Window {
	inward := rapid.Int64Range(0, int64(90*24*time.Hour/time.Microsecond))
	edge := func(name string, outermost time.Time, sign int, none time.Time) time.Time {
		// Small numbers are drawn most: many windows hold most of the readings.
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
		From: edge("from", exportFrom.AddDate(0, 0, -10), -1, time.Time{}),
		To:   edge("to", exportFrom.AddDate(0, 0, 80), 1, roomsensor.Forever),
	}
	if w.To.Before(w.From) {
		w.From, w.To = w.To, w.From
	}
	return w
}

func selected(all []place, q roomsensor.ExportQuery) []place {
	var of []place
	for _, p := range all {
		if slices.Contains(q.Devices, p.Device) && !p.At.Before(q.Window.From) && p.At.Before(q.Window.To) {
			of = append(of, p)
		}
	}
	return of
}

// linesOf counts the distinct buckets of ordered places.
func linesOf(ordered []place) int {
	return len(slices.CompactFunc(slices.Clone(ordered), func(a, b place) bool { return a.At.Equal(b.At) }))
}
