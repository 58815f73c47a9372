package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// TestCurrentHours checks that a process that starts takes past hours from current_hours, and reads only those that are
// not in it: of an hour that a worker can still add readings to, and the current one.
func TestCurrentHours(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T02:00:00Z", 100), co2(uuid.Nil, "2026-03-04T22:10:00Z", 200),
		co2(uuid.Nil, "2026-03-04T23:10:00Z", 300))
	k.requireRead(t, "first", 300, 600)
	k.hideOnly(t, 1)
	k.requireRead(t, "in memory", 300, 600)
	k.restart()
	k.requireRead(t, "all but the hour of the newest reading", 1, 100+200+1)

	k.add(t, "2026-03-05T00:05:00Z", 500)
	k.restart()
	k.requireRead(t, "that hour has ended, and is stored now", 500, 100+200+1+500)
	k.hideOnly(t, 2)
	k.restart()
	k.requireRead(t, "it is stored", 2, 100+200+1+2)
	k.hours = roomsensor.SummaryWindow(at("2026-03-05T01:00:00Z"))
	k.restart()
	k.requireRead(t, "an hour later", 2, 100+200+1+2)
	k.hours = roomsensor.SummaryWindow(at("2026-03-05T02:00:00Z"))
	k.restart()
	k.requireRead(t, "without the hour that is in no snapshot any more", 2, 200+1+2)
	k.add(t, "2026-03-05T01:10:00Z", 400)
	k.restart()
	k.requireRead(t, "the hour that ended with it is stored, too", 400, 200+1+2+400)
	k.hours = summary
	k.restart()
	k.requireRead(t, "the first hours of a slower clock are stored no more", 400, 2+2+2+2)
	require.Zero(t, k.HourCounts().NotStored)
}

// TestCurrentHoursMerged checks that the hours of a device are read again after a worker changed one of its readings,
// and the others are not.
func TestCurrentHoursMerged(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T12:00:00Z", 100), co2(uuid.Nil, "2026-03-05T00:10:00Z", 200))
	other := k.newDevice(t, "dev:2")
	k.write(t, co2(other, "2026-03-04T12:00:00Z", 300), co2(other, "2026-03-05T00:10:00Z", 400))
	requireSums := func(message string, want ...float64) {
		t.Helper()
		k.restart()
		teams, err := k.CurrentTeams(t.Context(), []uuid.UUID{k.team}, roomsensor.DeviceQuery{Limit: 9}, k.hours)
		require.NoError(t, err)
		sums := map[uuid.UUID]float64{}
		for i := range teams[0] {
			sums[teams[0][i].ID] = teams[0][i].Last24h[roomsensor.CO2].Sum
		}
		require.Equal(t, map[uuid.UUID]float64{k.device: want[0], other: want[1]}, sums, message)
	}
	requireSums("first", 100+200, 300+400)
	k.hideOnly(t, 1)
	requireSums("stored", 100+1, 300+1)
	k.add(t, "2026-03-04T10:00:00Z", 500)
	requireSums("a late reading of the first device", 500+1+1, 300+1)
	k.exec(t, `UPDATE devices SET latest_bucket_at = NULL WHERE id = $1`, other)
	requireSums("the bound of the second device is unknown", 500+1+1, 1+1)
	_, _, err := k.RefreshLatest(t.Context(), uuid.Nil)
	require.NoError(t, err)
	k.hideOnly(t, 2)
	requireSums("and found again", 500+1+2, 2+2)
	k.exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-03-05 00:55:00Z')`, other)
	requireSums("another program changed readings", 2+2+2, 2+2)
}

// TestCurrentHoursPurge checks that the hours of a device are deleted with it, and once they are in no snapshot any more.
func TestCurrentHoursPurge(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T12:00:00Z", 100))
	other := k.newDevice(t, "dev:2")
	k.write(t, co2(other, "2026-03-04T12:00:00Z", 100))
	stored := func() (devices []uuid.UUID) {
		t.Helper()
		require.NoError(t, k.sql.QueryRow(t.Context(), `SELECT array_agg(device_id) FROM current_hours`).Scan(&devices))
		return devices
	}
	k.requireRead(t, "first", 100, 100)
	require.Len(t, stored(), 2)
	_, err := k.DeleteDevice(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{k.device}, stored())

	k.exec(t, `UPDATE current_hours SET hours_to = now() - INTERVAL '24 hours'`)
	deleted, err := k.PurgeCurrentHours(t.Context())
	require.NoError(t, err)
	require.Zero(t, deleted)
	k.exec(t, `UPDATE current_hours SET hours_to = now() - INTERVAL '26 hours'`)
	deleted, err = k.PurgeCurrentHours(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), deleted)
	require.Empty(t, stored())
}

// TestCurrentHoursFail checks that a snapshot does not need current_hours: what an older or newer version has written
// there is ignored, and what cannot be stored is counted.
func TestCurrentHoursFail(t *testing.T) {
	t.Parallel()
	k := setupKept(t, co2(uuid.Nil, "2026-03-04T12:00:00Z", 100), co2(uuid.Nil, "2026-03-05T00:10:00Z", 200))
	k.requireRead(t, "first", 200, 300)
	k.exec(t, `UPDATE current_hours SET sums = sums || '\x00'`)
	k.restart()
	k.requireRead(t, "another length", 200, 300)

	k.exec(t, `TRUNCATE current_hours; ALTER TABLE current_hours ADD CHECK (false)`)
	k.restart()
	k.requireRead(t, "nothing can be stored", 200, 300)
	require.Equal(t, store.HourCounts{Read: 3 * 23, NotStored: 1}, k.HourCounts())
}
