package localcopy_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/client"
	"roomsensor/client/localcopy"
	"roomsensor/client/localcopy/parquet"
	"roomsensor/client/localcopy/sqlite"
	"roomsensor/test/copytest"
)

// kind is a kind of store: how to open one, and how a user reads it.
type kind struct {
	open        func(ctx context.Context, path string) (localcopy.Store, error)
	read        func(t require.TestingT, path string) []string
	assignments func(t require.TestingT, path string) []string
}

var kinds = map[string]kind{
	"sqlite": {
		func(ctx context.Context, path string) (localcopy.Store, error) { return sqlite.Open(ctx, path) },
		copytest.SQLite, copytest.SQLiteAssignments,
	},
	"parquet": {
		func(_ context.Context, path string) (localcopy.Store, error) { return parquet.Open(path) },
		copytest.Parquet, copytest.ParquetAssignments,
	},
}

func sequence(rows []client.DeviceReading) iter.Seq2[client.DeviceReading, error] {
	return func(yield func(client.DeviceReading, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

var newYear = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// A store has the last state of each reading and the last state of the copy, however changes are divided into commits.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { k.check(rt, filepath.Join(t.TempDir(), "copy")) })
		})
	}
}

// check applies random commits to a store and to a map.
func (k kind) check(t *rapid.T, path string) {
	ctx := context.Background()
	s, err := k.open(ctx, path)
	require.NoError(t, err)
	_, found, err := s.State(ctx)
	require.NoError(t, err)
	require.False(t, found)
	want := map[keptRow]string{}
	keep := func(rows []client.DeviceReading) {
		for _, r := range rows {
			want[keptRow{r.DeviceID, r.BucketAt}] = copytest.Line(r.DeviceID.String(), r.BucketAt, r.IngestedAt, r.CO2PPM, r.TempC, r.HumidityPct, r.Lux, r.SPLDB)
		}
	}
	if rapid.Bool().Draw(t, "import") {
		rows := drawRows(t, newYear, 2000)
		slices.SortFunc(rows, func(a, b client.DeviceReading) int {
			return strings.Compare(a.BucketAt.Format(time.RFC3339)+a.DeviceID.String(), b.BucketAt.Format(time.RFC3339)+b.DeviceID.String())
		})
		rows = slices.CompactFunc(rows, func(a, b client.DeviceReading) bool { return a.BucketAt.Equal(b.BucketAt) && a.DeviceID == b.DeviceID })
		require.NoError(t, s.Import(ctx, sequence(rows)))
		require.NoError(t, s.Import(ctx, sequence(rows)), "again, after an interruption")
		keep(rows)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "commits") {
		month := newYear.AddDate(0, rapid.IntRange(0, 2).Draw(t, "month"), 0)
		changes := localcopy.Changes{Deleted: drawDeletions(t, month), Rows: drawRows(t, month, 30)}
		state := localcopy.State{Version: 1, Phase: localcopy.Following, Position: client.Position(fmt.Sprint("position ", i))}
		require.NoError(t, s.Commit(ctx, changes, state))
		for _, d := range changes.Deleted {
			maps.DeleteFunc(want, func(key keptRow, _ string) bool {
				return key.device == d.DeviceID && !key.at.Before(d.From) && key.at.Before(d.To)
			})
		}
		keep(changes.Rows)
		if rapid.Bool().Draw(t, "reopen") {
			require.NoError(t, s.Close())
			s, err = k.open(ctx, path)
			require.NoError(t, err)
		}
		got, found, err := s.State(ctx)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, state, got)
	}
	require.NoError(t, s.Close())
	lines := make([]string, 0, len(want))
	for _, l := range want {
		lines = append(lines, l)
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		lines = nil
	}
	require.Equal(t, lines, k.read(t, path))
}

// keptRow is the key of a row.
type keptRow struct {
	device uuid.UUID
	at     time.Time
}

// drawDeletions draws ranges of a device that begin in a month.
func drawDeletions(t *rapid.T, month time.Time) []client.ReadingDeletion {
	deleted := make([]client.ReadingDeletion, rapid.IntRange(0, 2).Draw(t, "deletions"))
	for i := range deleted {
		from := month.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "first")) * 5 * time.Minute)
		deleted[i] = client.ReadingDeletion{
			DeviceID: uuid.UUID{15: byte(rapid.IntRange(0, 2).Draw(t, "device"))}, From: from,
			To: from.Add(time.Duration(rapid.IntRange(1, 9000).Draw(t, "buckets")) * 5 * time.Minute),
		}
	}
	return deleted
}

// drawRows draws rows of three devices in one month. Some have the same key.
func drawRows(t *rapid.T, from time.Time, most int) []client.DeviceReading {
	rows := make([]client.DeviceReading, rapid.IntRange(0, most).Draw(t, "rows"))
	for i := range rows {
		n := rapid.IntRange(0, 8000).Draw(t, "row")
		r := &rows[i]
		r.DeviceID, r.BucketAt = uuid.UUID{15: byte(n % 3)}, from.Add(time.Duration(n)*5*time.Minute)
		r.IngestedAt = from.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "ingested")) * time.Microsecond)
		for _, metric := range []**float64{&r.CO2PPM, &r.TempC, &r.HumidityPct, &r.Lux, &r.SPLDB} {
			if x := rapid.IntRange(-20, 3000).Draw(t, "value"); x%4 != 0 {
				*metric = new(float64(float32(x) / 8))
			}
		}
	}
	return rows
}

func TestStoreDevices(t *testing.T) {
	t.Parallel()
	seen := newYear.Add(1500 * time.Millisecond)
	devices := []client.Device{
		{DeviceID: uuid.UUID{15: 1}, HardwareID: "dev:1", DisplayName: new("Hall"), Metadata: map[string]string{"floor": "2"}, LastSeenAt: &seen},
		{DeviceID: uuid.UUID{15: 2}, HardwareID: "dev:2"},
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "copy")
		s, err := sqlite.Open(t.Context(), path)
		require.NoError(t, err)
		require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Devices: devices}, localcopy.State{}))
		require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Devices: devices[:1]}, localcopy.State{}))
		require.NoError(t, s.Close())
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		var got string
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT group_concat(device_id || ' ' || hardware_id || ' ' ||
			display_name || ' ' || metadata || ' ' || last_seen_at) FROM devices`).Scan(&got))
		require.Equal(t, "00000000-0000-0000-0000-000000000001 dev:1 Hall {\"floor\":\"2\"} 2026-01-01T00:00:01.5Z", got)
		require.NoError(t, db.Close())
	})
	t.Run("parquet", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s, err := parquet.Open(dir)
		require.NoError(t, err)
		require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Devices: devices}, localcopy.State{}))
		require.NoError(t, s.Close())
		type row struct {
			DisplayName *string `parquet:"display_name,optional"`
			Metadata    string  `parquet:"metadata"`
			LastSeenAt  *int64  `parquet:"last_seen_at,optional"`
		}
		rows, err := parquetgo.ReadFile[row](filepath.Join(dir, "current", "devices.parquet"))
		require.NoError(t, err)
		require.Equal(t, []row{{new("Hall"), `{"floor":"2"}`, new(seen.UnixMicro())}, {nil, "{}", nil}}, rows)
	})
}

// The assignments and the state are replaced in one step, and what was removed is in no file any more.
func TestStoreAssignments(t *testing.T) {
	t.Parallel()
	started := newYear.Add(500 * time.Millisecond)
	assignments := []client.TeamAssignment{
		{AssignmentID: uuid.UUID{15: 1}, Type: client.AssignmentTypePlace, Label: "Gym", StartedAt: newYear},
		{
			AssignmentID: uuid.UUID{15: 2}, DeviceID: uuid.UUID{15: 9}, Type: client.AssignmentTypeAthlete, Label: "Kim Lee",
			HomeOrTravel: client.HomeOrTravelTravel, StartedAt: started, EndedAt: new(newYear.Add(time.Hour)),
			ExternalRef: new("crm-7"), DisplayName: new("Hall"),
		},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "copy")
			s, err := k.open(t.Context(), path)
			require.NoError(t, err)
			state := localcopy.State{Phase: localcopy.Following, Position: "x", ListsAt: newYear}
			require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Assignments: assignments}, state))
			got, _, err := s.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, state, got)
			require.NoError(t, s.Close())
			second := map[string]string{"sqlite": "01", "parquet": "00.5"}[name] // SQLite compares texts.
			require.ElementsMatch(t, []string{
				`2026-01-01T00:00:00Z - "00000000-0000-0000-0000-000000000001" "place" "Gym" "" - "00000000-0000-0000-0000-000000000000" -`,
				"2026-01-01T00:00:" + second + `Z 2026-01-01T01:00:00Z "00000000-0000-0000-0000-000000000002" "athlete" "Kim Lee" ` +
					`"travel" "crm-7" "00000000-0000-0000-0000-000000000009" "Hall"`,
			}, k.assignments(t, path))

			s, err = k.open(t.Context(), path)
			require.NoError(t, err)
			require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Assignments: assignments[:1]}, state))
			require.NoError(t, s.Close())
			require.Len(t, k.assignments(t, path), 1)
			files := os.DirFS(filepath.Dir(path))
			require.NoError(t, fs.WalkDir(files, ".", func(file string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return err
				}
				text, err := fs.ReadFile(files, file)
				require.NotContains(t, string(text), "Kim Lee")
				return err
			}))
		})
	}
}

// Compared as texts in SQLite, an assignment holds the readings of [started_at, ended_at), also if a time has a fraction.
func TestStoreComparesTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "copy")
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	rows := make([]client.DeviceReading, 4)
	for i := range rows {
		rows[i] = client.DeviceReading{Reading: client.Reading{BucketAt: newYear.Add(time.Duration(i) * 5 * time.Minute)}}
	}
	require.NoError(t, s.Commit(t.Context(), localcopy.Changes{Rows: rows}, localcopy.State{}))
	for _, test := range []struct {
		start, end time.Duration
		held       int
	}{
		{0, 5 * time.Minute, 1},
		{time.Microsecond, 5 * time.Minute, 0},
		{time.Microsecond, 5*time.Minute + time.Microsecond, 1},
		{5 * time.Minute, 10*time.Minute + 999_999*time.Microsecond, 2},
		{5*time.Minute + 1, 10 * time.Minute, 0},
	} {
		require.NoError(t, s.SetLists(t.Context(), localcopy.Lists{Assignments: []client.TeamAssignment{
			{StartedAt: newYear.Add(test.start), EndedAt: new(newYear.Add(test.end))},
		}}, localcopy.State{}))
		db := copytest.OpenSQLite(t, path)
		var held int
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM readings, assignments
			WHERE bucket_at >= started_at AND bucket_at < ended_at`).Scan(&held))
		require.NoError(t, db.Close())
		require.Equal(t, test.held, held, "%v", test)
	}
	require.NoError(t, s.Close())
}

// A database of another program stays as it is.
func TestStoreForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `CREATE TABLE readings (x)`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = sqlite.Open(t.Context(), path)
	require.ErrorIs(t, err, sqlite.ErrForeign)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// One program at a time writes a copy.
func TestStoreLock(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		path := "/" + filepath.Join(t.TempDir(), name) // Two slashes at the start are as good as one.
		s, err := k.open(t.Context(), path)
		require.NoError(t, err)
		_, err = k.open(t.Context(), path)
		require.ErrorContains(t, err, "another process holds the lock")
		require.NoError(t, s.Close())
		s, err = k.open(t.Context(), path)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}
