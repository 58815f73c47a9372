package archive_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin/archive"
	"roomsensor/internal/config"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// row is a row of a file, and of the query that it is compared with.
type row struct {
	BucketAt    time.Time `parquet:"bucket_at,timestamp(microsecond)"`
	DeviceID    string    `parquet:"device_id"`
	DisplayName *string   `parquet:"display_name"`
	CO2PPM      *float32  `parquet:"co2_ppm"`
	TempC       *float32  `parquet:"temp_c"`
	HumidityPct *float32  `parquet:"humidity_pct"`
	Lux         *float32  `parquet:"lux"`
	SPLDB       *float32  `parquet:"spl_db"`
	ValidMask   int32     `parquet:"valid_mask"`
	IngestedAt  time.Time `parquet:"ingested_at,timestamp(microsecond)"`
	MeasuredAt  time.Time `parquet:"measured_at,timestamp(microsecond)"`
	HardwareID  *string   `parquet:"hardware_id"`
}

const rowsOfMonth = `
	SELECT r.bucket_at, r.device_id::text, d.display_name, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db,
	       num_nonnulls(r.co2_ppm) + 2 * num_nonnulls(r.temp_c), r.ingested_at, coalesce(r.measured_at, r.bucket_at),
	       (SELECT h.hardware_id FROM device_hardware h WHERE h.device_id = r.device_id
	          AND coalesce(h.installed_at, '-infinity') <= coalesce(r.measured_at, r.bucket_at)
	          AND coalesce(r.measured_at, r.bucket_at) < coalesce(h.removed_at, 'infinity'))
	FROM readings r JOIN devices d ON d.id = r.device_id
	WHERE d.team_id = $1 AND to_char(r.bucket_at AT TIME ZONE 'UTC', 'YYYY-MM') = $2
	ORDER BY r.bucket_at, r.device_id`

type fixture struct {
	*storetest.Fixture

	dir string
}

// setup stores readings of two devices and a unit that was replaced, from 2026-01-01 to 2026-02-09.
func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{storetest.New(t), filepath.Join(t.TempDir(), "archive")}
	_, err := f.ReplaceHardware(t.Context(), f.TeamID, f.DeviceID, "dev:7", time.Date(2026, 1, 20, 0, 2, 0, 0, time.UTC))
	require.NoError(t, err)
	f.Exec(t, `UPDATE devices SET display_name = 'Gym'`)
	without := f.InsertDevice(t)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT $1, at, extract(day FROM at)
		FROM generate_series(TIMESTAMPTZ '2026-01-01Z', '2026-02-09 23:00Z', '1 hour') at`, f.DeviceID)
	f.Fill(t, 100, without)
	f.Exec(t, `UPDATE readings SET measured_at = bucket_at + interval '3 minutes', temp_c = 20.5, ingested_at = bucket_at + interval '4 minutes'
		WHERE co2_ppm::int % 2 = 0`)
	return f
}

var march = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// write writes an archive of the team.
func (f *fixture) write(t *testing.T, o archive.Options) archive.Result {
	t.Helper()
	files, err := archive.Open(f.dir, &config.ObjectStore{})
	require.NoError(t, err)
	result, err := f.writeTo(t.Context(), files, o)
	require.NoError(t, err)
	return result
}

func (f *fixture) writeTo(ctx context.Context, files archive.Files, o archive.Options) (archive.Result, error) {
	o.Progress = func(string) {}
	if o.Teams == nil {
		o.Teams = []uuid.UUID{f.TeamID}
	}
	if o.Until.IsZero() {
		o.Until = march
	}
	return archive.Write(ctx, f.Store, files, o)
}

// path returns the path of the file of a month.
func (f *fixture) path(month string) string {
	return filepath.Join(f.dir, "team_id="+f.TeamID.String(), "month="+month, "readings.parquet")
}

// requireMonth compares the file of a month, and its entry in the index, with the database.
func (f *fixture) requireMonth(t *testing.T, month string) {
	t.Helper()
	rows, err := f.SQL.Query(t.Context(), rowsOfMonth, f.TeamID, month)
	require.NoError(t, err)
	want, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	got, err := parquet.ReadFile[row](f.path(month))
	require.NoError(t, err)
	for i := range want {
		for _, at := range []*time.Time{&want[i].BucketAt, &want[i].IngestedAt, &want[i].MeasuredAt} {
			*at = at.UTC()
		}
	}
	require.Equal(t, want, got)
	content, err := os.ReadFile(f.path(month))
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	e := f.index(t)[month]
	require.NotZero(t, e.WrittenAt)
	last := len(want) - 1
	newest := want[0].IngestedAt
	devices := map[string]bool{}
	for _, r := range want {
		devices[r.DeviceID] = true
		if r.IngestedAt.After(newest) {
			newest = r.IngestedAt
		}
	}
	require.Equal(t, archive.Entry{
		Path: "team_id=" + f.TeamID.String() + "/month=" + month + "/readings.parquet", TeamID: f.TeamID.String(), Month: month,
		Rows: int64(len(want)), Devices: int64(len(devices)), FirstBucketAt: want[0].BucketAt, LastBucketAt: want[last].BucketAt,
		Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), NewestIngestedAt: newest, WrittenAt: e.WrittenAt,
	}, e)
}

// index returns the entries of the team by month.
func (f *fixture) index(t *testing.T) map[string]archive.Entry {
	t.Helper()
	list, err := parquet.ReadFile[archive.Entry](filepath.Join(f.dir, "index.parquet"))
	require.NoError(t, err)
	entries := map[string]archive.Entry{}
	for _, e := range list {
		entries[e.Month] = e
	}
	require.Len(t, entries, len(list))
	return entries
}

// files lists all files of the archive.
func (f *fixture) files(t *testing.T) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// TestWrite compares the files of an archive with the database.
func TestWrite(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.Zero(t, f.write(t, archive.Options{Until: march.AddDate(0, -1, -1)}).Written, "no month has ended")
	r := f.write(t, archive.Options{Until: march.Add(-time.Second)})
	require.Equal(t, 1, r.Written)
	require.Equal(t, "2026-01", r.Data[0].Month)
	r = f.write(t, archive.Options{})
	require.Equal(t, archive.Result{Written: 1, Unchanged: 1, Data: []archive.Month{{
		TeamID: f.TeamID.String(), Month: "2026-02", State: archive.Written, Readings: 9 * 24, Bytes: r.Data[0].Bytes,
		Path: "team_id=" + f.TeamID.String() + "/month=2026-02/readings.parquet",
	}}}, r)
	f.requireMonth(t, "2026-01")
	f.requireMonth(t, "2026-02")
	require.Len(t, f.files(t), 3)

	// Another team has files of its own.
	other := storetest.Connect(t, f.URL)
	device := other.NewDevice(t, "dev:3")
	other.Fill(t, 10, device)
	r = f.write(t, archive.Options{Teams: []uuid.UUID{other.TeamID, f.TeamID}})
	require.Equal(t, []int{1, 2}, []int{r.Written, r.Unchanged})
	require.EqualValues(t, 10, r.Data[0].Readings)
	require.Len(t, f.files(t), 4)
}

// TestWriteAgain checks which months are written again.
func TestWriteAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.Equal(t, 2, f.write(t, archive.Options{}).Written)
	require.Equal(t, 2, f.write(t, archive.Options{}).Unchanged)
	target := f.dir
	f.dir += "-link"
	require.NoError(t, os.Symlink(target, f.dir))
	require.Equal(t, 2, f.write(t, archive.Options{}).Unchanged, "through a symbolic link")
	f.dir = target
	again := func(why string, o archive.Options, want archive.Month) {
		t.Helper()
		r := f.write(t, o)
		require.Len(t, r.Data, 1, why)
		want.TeamID, want.Bytes, want.Path = r.Data[0].TeamID, r.Data[0].Bytes, r.Data[0].Path
		require.Equal(t, want, r.Data[0], why)
		if want.State == archive.Written {
			f.requireMonth(t, want.Month)
			require.Equal(t, 2, f.write(t, archive.Options{}).Unchanged, why)
		}
	}
	january, february := int64(31*24+100), int64(9*24)
	change := func(sql string) { f.Exec(t, sql, f.DeviceID) }

	change(`INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, '2026-02-20Z', 1)`)
	february++
	again("a late reading", archive.Options{}, archive.Month{Month: "2026-02", State: archive.Written, Readings: february})
	change(`UPDATE readings SET co2_ppm = 2, ingested_at = now() WHERE device_id = $1 AND bucket_at = '2026-01-31Z'`)
	again("a reading that changed", archive.Options{}, archive.Month{Month: "2026-01", State: archive.Written, Readings: january})
	require.NoError(t, os.Remove(f.path("2026-01")))
	again("a missing file", archive.Options{}, archive.Month{Month: "2026-01", State: archive.Written, Readings: january})
	require.NoError(t, os.Truncate(f.path("2026-01"), 100))
	again("an incomplete file", archive.Options{}, archive.Month{Month: "2026-01", State: archive.Written, Readings: january})

	// As a retention leaves it, while more arrives late than it deletes.
	kept, err := os.ReadFile(f.path("2026-01"))
	require.NoError(t, err)
	change(`DELETE FROM readings WHERE device_id = $1 AND bucket_at < '2026-01-02Z'`)
	change(`INSERT INTO readings (device_id, bucket_at) SELECT d.id, at FROM devices d,
		generate_series(TIMESTAMPTZ '2026-01-10Z', '2026-01-12Z', '5 minutes') at WHERE d.id <> $1`)
	january += -24 + 577
	again("deleted readings", archive.Options{},
		archive.Month{Month: "2026-01", State: archive.Kept, Readings: january, Missing: 24})
	now, err := os.ReadFile(f.path("2026-01"))
	require.NoError(t, err)
	require.Equal(t, kept, now)
	require.NoError(t, os.Remove(filepath.Join(f.dir, "index.parquet")))
	r := f.write(t, archive.Options{})
	require.Equal(t, []int{1, 1}, []int{r.Written, r.Kept}, "a run ended before it wrote the index")
	again("deleted readings", archive.Options{Deletions: true},
		archive.Month{Month: "2026-01", State: archive.Written, Readings: january, Missing: 24})

	change(`DELETE FROM readings WHERE bucket_at < '2026-02-01Z' AND $1::uuid IS NOT NULL`)
	r = f.write(t, archive.Options{Deletions: true})
	require.Equal(t, archive.Result{Unchanged: 1, Data: []archive.Month{}}, r, "a month without readings keeps its file")
	require.Len(t, f.index(t), 2)
	require.NoError(t, os.Remove(f.path("2026-01")))
	f.write(t, archive.Options{})
	require.Len(t, f.index(t), 1, "the file was removed")
	require.Len(t, f.files(t), 2)
}

// failing are files of which one cannot be stored.
type failing struct {
	archive.Files

	month string
}

func (f failing) Store(ctx context.Context, file *os.File, path, sum string) error {
	if strings.Contains(path, f.month) {
		return errors.New("no space left on device")
	}
	return f.Files.Store(ctx, file, path, sum)
}

// TestWriteFails checks that a run that fails leaves the complete files and the index of them, and nothing else.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	files, err := archive.Open(f.dir, &config.ObjectStore{})
	require.NoError(t, err)
	r, err := f.writeTo(t.Context(), failing{files, "2026-02"}, archive.Options{})
	require.ErrorContains(t, err, "month=2026-02/readings.parquet: no space left on device")
	require.Equal(t, 1, r.Written)
	f.requireMonth(t, "2026-01")
	require.Len(t, f.files(t), 2)
	r = f.write(t, archive.Options{})
	require.Equal(t, []int{1, 1}, []int{r.Written, r.Unchanged})
	_, err = f.writeTo(t.Context(), files, archive.Options{Teams: []uuid.UUID{uuid.New()}})
	require.NoError(t, err, "a team without readings")
}

func TestOpen(t *testing.T) {
	t.Parallel()
	var missing *config.ValueError
	_, err := archive.Open("s3://bucket/prefix", &config.ObjectStore{S3AccessKey: "a"})
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "s3-secret-key", missing.Flag)
}
