package store_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestDevicesPageByPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 7 {
		f.newDevice(t, fmt.Sprintf("dev:10%d", i))
	}
	var ids []uuid.UUID
	var after *uuid.UUID
	for {
		page, err := f.Devices(t.Context(), f.team, roomsensor.DeviceQuery{After: after, Limit: 3})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		after = &ids[len(ids)-1]
	}
	require.Len(t, ids, 8)
	require.IsIncreasing(t, texts(ids))

	foreign, err := f.Devices(t.Context(), uuid.New(), roomsensor.DeviceQuery{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, foreign)
}

func texts(ids []uuid.UUID) (list []string) {
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}

func TestMetadataFilters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `UPDATE devices SET metadata = '{"floor": "3", "site": "Ost"}' WHERE id = $1`, f.device)
	f.newDevice(t, "dev:2")
	for _, test := range []struct {
		filter map[string]string
		found  int
	}{
		{nil, 2},
		{map[string]string{"floor": "3"}, 1},
		{map[string]string{"floor": "3", "site": "Ost"}, 1},
		{map[string]string{"floor": "3", "site": "ost"}, 0},
		{map[string]string{"floor": ""}, 0},
		{map[string]string{"floor": "\x00"}, 0},
		{map[string]string{"floor": "\xff"}, 0},
		{map[string]string{"": "3"}, 0},
	} {
		q := roomsensor.DeviceQuery{Metadata: test.filter, Limit: 10}
		list, err := f.Devices(t.Context(), f.team, q)
		require.NoError(t, err)
		require.Len(t, list, test.found, "%q", test.filter)
		current, err := f.CurrentDevices(t.Context(), f.team, q, roomsensor.SummaryWindow(time.Now()))
		require.NoError(t, err)
		require.Len(t, current, test.found, "%q", test.filter)
	}
}

func TestCurrentDevices(t *testing.T) {
	t.Parallel()
	f := setup(t)
	silent := f.newDevice(t, "dev:2")
	now := at("2026-02-02T10:30:00Z")
	f.write(t,
		co2(f.device, "2025-02-02T10:25:00Z", 9999), // long ago
		co2(f.device, "2026-02-01T10:59:00Z", 1),    // an hour too old
		co2(f.device, "2026-02-01T11:00:00Z", 400),
		co2(f.device, "2026-02-02T10:25:00Z", 401),
	)
	f.write(t, co2(f.device, "2026-02-02T10:00:00Z", 500)) // arrives last, is not the newest

	current, err := f.CurrentDevices(t.Context(), f.team, roomsensor.DeviceQuery{Limit: 10}, roomsensor.SummaryWindow(now))
	require.NoError(t, err)
	require.Len(t, current, 2)
	for _, d := range current {
		if d.ID == silent {
			require.Nil(t, d.Latest)
			require.Zero(t, d.Last24h)
			continue
		}
		require.Equal(t, at("2026-02-02T10:25:00Z"), d.Latest.BucketAt)
		require.Equal(t, roomsensor.Stat{Min: 400, Max: 500, Sum: 400 + 401 + 500, Count: 3}, d.Last24h[roomsensor.CO2])
		require.Zero(t, d.Last24h[roomsensor.Temp])
	}
}

func TestReadingsPageByPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := at("2026-01-01T00:00:00Z")
	for i := range 10 {
		f.write(t, co2(f.device, roomsensor.FormatTime(start.Add(time.Duration(i)*roomsensor.BucketLength)), float32(i)))
	}
	window := roomsensor.Window{From: start.Add(roomsensor.BucketLength), To: start.Add(9 * roomsensor.BucketLength)}
	var got []float32
	var before *time.Time
	for {
		page := f.readings(t, f.team, f.device, roomsensor.ReadingQuery{Window: window, Before: before, Limit: 3})
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			x, _ := valueOf(r, roomsensor.CO2)
			got = append(got, x)
		}
		before = &page[len(page)-1].BucketAt
	}
	require.Equal(t, []float32{8, 7, 6, 5, 4, 3, 2, 1}, got, "half-open, newest first")

	require.Empty(t, f.readings(t, uuid.New(), f.device, roomsensor.ReadingQuery{Window: window, Limit: 3}), "of another team")
}

// A number that JSON cannot print is served as absent, whoever put it there.
func TestNotANumberIsServedAsNull(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, "INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES ($1, '2026-01-01T00:00:00Z', 'NaN', 20)", f.device)
	stored := f.readAll(t, f.device)
	require.Len(t, stored, 1)
	require.EqualValues(t, 2, stored[0].Values.Mask())
}

// What a reading shows as null counts in no summary either.
func TestNotANumberCountsInNoSummary(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-01-01T00:00:00Z', 'NaN', 'Infinity', '-Infinity', '-0', 'NaN'),
		($1, '2026-01-01T00:05:00Z', 400, 20, NULL, '-0', 'Infinity'),
		($1, '2026-01-01T00:10:00Z', 402, '-Infinity', 50, '-0', '-Infinity')`, f.device)
	current, err := f.CurrentDevices(t.Context(), f.team, roomsensor.DeviceQuery{Limit: 10},
		roomsensor.SummaryWindow(at("2026-01-01T00:30:00Z")))
	require.NoError(t, err)
	require.Len(t, current, 1)
	require.Equal(t, roomsensor.Stats{
		roomsensor.CO2:      {Min: 400, Max: 402, Sum: 802, Count: 2},
		roomsensor.Temp:     {Min: 20, Max: 20, Sum: 20, Count: 1},
		roomsensor.Humidity: {Min: 50, Max: 50, Sum: 50, Count: 1},
		roomsensor.Lux:      {Count: 3},
	}, current[0].Last24h)
	lux := current[0].Last24h[roomsensor.Lux]
	for _, x := range []float32{lux.Min, lux.Max, lux.Mean()} {
		require.False(t, math.Signbit(float64(x)), "-0 is 0")
	}
}

// PostgreSQL has times that no client can read: they are served as the nearest
// that can be printed.
func TestTimesOutOfReach(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key, err := f.CreateAPIKey(t.Context(), roomsensor.Key{ID: "key", TeamID: f.team, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)
	f.exec(t, "UPDATE api_keys SET expires_at = 'infinity'")
	f.exec(t, "UPDATE devices SET last_seen_at = '-infinity'")
	f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
		VALUES ($1, 'place', 'Room', '4000-01-01 BC', 'infinity')`, f.device)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, ingested_at) VALUES
		($1, '2026-01-01T00:00:00Z', 'infinity'), ($1, '2026-01-01T00:05:00Z', '20000-01-01T00:00:00Z')`, f.device)

	first := at("0001-01-01T00:00:00Z")
	found, err := f.APIKey(t.Context(), key.ID)
	require.NoError(t, err)
	require.Equal(t, roomsensor.Forever, found.ExpiresAt.UTC())
	device, err := f.Device(t.Context(), f.team, f.device)
	require.NoError(t, err)
	require.Equal(t, first, device.LastSeenAt.UTC())
	blocks, err := f.Assignments(t.Context(), f.team, f.device, roomsensor.AssignmentQuery{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, first, blocks[0].StartedAt)
	require.Equal(t, roomsensor.Forever, *blocks[0].EndedAt)
	for _, r := range f.readAll(t, f.device) {
		require.Equal(t, roomsensor.Forever, r.IngestedAt)
	}
}

func TestAssignmentsPageByPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for day := 1; day <= 5; day++ {
		a, err := f.StartAssignment(t.Context(), roomsensor.Assignment{
			DeviceID: f.device, Type: roomsensor.Place, Label: fmt.Sprint(day), HomeOrTravel: roomsensor.Home,
			StartedAt: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
		})
		require.NoError(t, err)
		if day < 5 {
			_, err = f.EndAssignment(t.Context(), a.ID, a.StartedAt.Add(time.Hour))
			require.NoError(t, err)
		}
	}
	var labels []string
	var after *roomsensor.AssignmentPosition
	for {
		page, err := f.Assignments(t.Context(), f.team, f.device, roomsensor.AssignmentQuery{After: after, Limit: 2})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, a := range page {
			labels = append(labels, a.Label)
		}
		last := page[len(page)-1]
		after = &roomsensor.AssignmentPosition{StartedAt: last.StartedAt, ID: last.ID}
	}
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, labels)

	d, err := f.Device(t.Context(), f.team, f.device)
	require.NoError(t, err)
	require.Equal(t, "5", d.ActiveAssignment.Label)
	one, err := f.Assignment(t.Context(), f.team, d.ActiveAssignment.ID)
	require.NoError(t, err)
	require.Equal(t, f.device, one.DeviceID)
	require.Nil(t, one.EndedAt)
	_, err = f.Assignment(t.Context(), uuid.New(), one.ID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.Device(t.Context(), uuid.New(), f.device)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
