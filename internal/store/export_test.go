package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var exportFrom = at("2026-01-01T00:00:00Z")

func (f *fixture) fill(t *testing.T, buckets int, devices ...uuid.UUID) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT d, $2::timestamptz + n * interval '5 minutes', n
		FROM unnest($1::uuid[]) d, generate_series(0, $3 - 1) n`, devices, exportFrom, buckets)
}

func days(n int) roomsensor.Window {
	return roomsensor.Window{From: exportFrom, To: exportFrom.AddDate(0, 0, n)}
}

func TestExportStreamsInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	second, other := f.newDevice(t, "dev:2"), f.newDevice(t, "dev:3")
	f.fill(t, 5, f.device, second, other)

	e, err := f.Export(t.Context(), f.team, roomsensor.ExportQuery{
		Window: days(1), Devices: []uuid.UUID{second, f.device, second}, Lines: true,
	})
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, 10, e.Rows())
	require.Equal(t, 5, e.Lines())

	f.fill(t, 1, uuid.New())
	f.exec(t, "DELETE FROM readings WHERE device_id = $1", second) // Not seen: one snapshot.
	var rows []roomsensor.ExportRow
	require.NoError(t, e.Each(t.Context(), func(row *roomsensor.ExportRow) error {
		rows = append(rows, *row)
		return nil
	}))
	require.Len(t, rows, 10)
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		require.True(t, a.BucketAt.Before(b.BucketAt) ||
			a.BucketAt.Equal(b.BucketAt) && a.DeviceID.String() < b.DeviceID.String())
	}
}

func TestExportOfNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fill(t, 5, f.device)
	for _, q := range []struct {
		team    uuid.UUID
		devices []uuid.UUID
	}{{f.team, []uuid.UUID{}}, {uuid.New(), []uuid.UUID{f.device}}} {
		e, err := f.Export(t.Context(), q.team, roomsensor.ExportQuery{Window: days(1), Devices: q.devices})
		require.NoError(t, err)
		require.Zero(t, e.Rows())
		require.NoError(t, e.Each(t.Context(), func(*roomsensor.ExportRow) error { return errors.New("a row") }))
		e.Close()
	}
}

// Decision 30: exactly 250,000 passes, one more is refused with the count and
// the longest window that would fit, and that window does fit.
func TestExportLimit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := []uuid.UUID{f.device}
	for _, id := range []string{"dev:2", "dev:3", "dev:4", "dev:5", "dev:6", "dev:7", "dev:8", "dev:9", "dev:10"} {
		devices = append(devices, f.newDevice(t, id))
	}
	f.fill(t, 25_000, devices...)
	q := roomsensor.ExportQuery{Window: days(90), Devices: devices}
	e, err := f.Export(t.Context(), f.team, q)
	require.NoError(t, err)
	require.Equal(t, roomsensor.MaxExportRows, e.Rows())
	e.Close()

	f.exec(t, "INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2)", f.device, exportFrom.AddDate(0, 0, 89))
	_, err = f.Export(t.Context(), f.team, q)
	var refused *roomsensor.TooManyRowsError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, roomsensor.MaxExportRows+1, refused.Rows)
	require.Equal(t, exportFrom.AddDate(0, 0, 89), *refused.FitsUntil, "a window ends where the first row too many begins")

	q.Window.To = *refused.FitsUntil
	e, err = f.Export(t.Context(), f.team, q)
	require.NoError(t, err)
	require.Equal(t, roomsensor.MaxExportRows, e.Rows())
	e.Close()
}

// Decision 30: where not even one bucket fits there is no window to offer, and
// above a million the count ends.
func TestExportWhereNoWindowFits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:1' FROM generate_series(1, 250001)`, f.team)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at)
		SELECT id, $2::timestamptz + n * interval '5 minutes' FROM devices, generate_series(0, 4) n WHERE team_id = $1`, f.team, exportFrom)
	names, err := f.DeviceNames(t.Context(), f.team)
	require.NoError(t, err)
	q := roomsensor.ExportQuery{Window: days(1)}
	for _, d := range names {
		q.Devices = append(q.Devices, d.ID)
	}
	_, err = f.Export(t.Context(), f.team, q)
	var refused *roomsensor.TooManyRowsError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, roomsensor.ExportCountCap+1, refused.Rows)
	require.Nil(t, refused.FitsUntil)
}

func TestExportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := []uuid.UUID{f.device}
	for i := range 7 {
		devices = append(devices, f.newDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.fill(t, 20_000, devices...) // Four slices, of which three are under way when it ends.
	e, err := f.Export(t.Context(), f.team, roomsensor.ExportQuery{Window: days(90), Devices: devices})
	require.NoError(t, err)
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	started := time.Now()
	err = e.Each(ctx, func(*roomsensor.ExportRow) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(started), time.Second, "the query is gone within a second (reliability, HTTP)")
}

// However the readings lie in the window, and whoever asks for how many devices,
// the slices together are what the database would sort.
func TestSlicesAreInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	devices := []uuid.UUID{f.device}
	for i := range 6 {
		devices = append(devices, f.newDevice(t, fmt.Sprint("dev:", 2+i)))
	}
	f.fill(t, 20_000, devices...) // Three slices.
	f.exec(t, `DELETE FROM readings WHERE device_id = $1 AND bucket_at > $2`, f.device, exportFrom.AddDate(0, 0, 1))
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) SELECT unnest($1::uuid[]), $2`, devices, exportFrom.AddDate(0, 0, 89))
	f.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2)`, f.device, exportFrom.AddDate(300, 0, 0))

	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:8' FROM generate_series(1, 7000)`, f.team)
	team, err := f.DeviceNames(t.Context(), f.team)
	require.NoError(t, err)
	var many []uuid.UUID // Too many for two slices to be asked for at once.
	for _, d := range team {
		many = append(many, d.ID)
	}

	for name, q := range map[string]roomsensor.ExportQuery{
		"all":         {Window: days(90), Devices: devices},
		"odd edges":   {Window: roomsensor.Window{From: exportFrom.Add(7 * time.Second), To: exportFrom.AddDate(0, 0, 60).Add(time.Microsecond)}, Devices: devices},
		"without end": {Window: roomsensor.Window{To: roomsensor.Forever}, Devices: devices},
		"many":        {Window: days(90), Devices: many},
		"named twice": {Window: days(90), Devices: slices.Repeat(devices, 2)},
		"nothing":     {Window: roomsensor.Window{From: exportFrom.AddDate(0, 0, 80), To: exportFrom.AddDate(0, 0, 81)}, Devices: devices},
	} {
		rows, err := f.sql.Query(t.Context(), `SELECT device_id, bucket_at FROM readings
			WHERE device_id = ANY($1) AND bucket_at >= $2 AND bucket_at < $3 ORDER BY bucket_at, device_id`, q.Devices, q.Window.From, q.Window.To)
		require.NoError(t, err)
		want, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
			Device uuid.UUID
			At     time.Time
		}])
		require.NoError(t, err)

		e, err := f.Export(t.Context(), f.team, q)
		require.NoError(t, err)
		t.Cleanup(e.Close)
		require.Equal(t, len(want), e.Rows(), name)
		n := 0
		require.NoError(t, e.Each(t.Context(), func(row *roomsensor.ExportRow) error {
			require.Equal(t, want[n].Device, row.DeviceID, "%s: row %d", name, n)
			require.True(t, want[n].At.Equal(row.BucketAt), "%s: row %d", name, n)
			n++
			return nil
		}))
		require.Equal(t, len(want), n, name)
	}
}
