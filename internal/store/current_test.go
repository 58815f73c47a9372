package store_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// newTeam creates a team with devices, whose units are numbered from a number on.
func (f *fixture) newTeam(t *testing.T, devices, unit int) (team uuid.UUID) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), `INSERT INTO teams (name) VALUES ('Another') RETURNING id`).Scan(&team))
	f.exec(t, `INSERT INTO devices (team_id, hardware_id, metadata, latest_bucket_at)
		SELECT $1, 'dev:' || $2::integer + i, jsonb_build_object('number', i::text), '-infinity' FROM generate_series(1, $3) i`, team, unit, devices)
	return team
}

// TestCurrentTeams checks that each of several teams that are read together gets what it gets alone.
func TestCurrentTeams(t *testing.T) {
	t.Parallel()
	f := setup(t)
	hours := roomsensor.SummaryWindow(at(now))
	q := roomsensor.DeviceQuery{Limit: 5, MaxTagBytes: 1000}
	teams := []uuid.UUID{f.newTeam(t, 5, 100), f.newTeam(t, 0, 200), f.newTeam(t, 6, 300), f.newTeam(t, 3, 400), f.newTeam(t, 2, 500), f.newTeam(t, 2, 600)}
	const all, none, large, tagged, silent, other = 0, 1, 2, 3, 4, 5
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT id, $1::timestamptz - i * INTERVAL '25 minutes', i, 20.5 FROM devices, generate_series(1, 80) i WHERE team_id <> ALL($2)`,
		hours.To, []uuid.UUID{teams[silent], teams[other]})
	f.exec(t, `UPDATE readings SET temp_c = 'NaN' WHERE co2_ppm = 4`)
	f.exec(t, `UPDATE devices SET metadata = jsonb_build_object('long', repeat('x', 400)) WHERE team_id = $1`, teams[tagged])
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT id, $1::timestamptz - INTERVAL '40 days', 7 FROM devices WHERE team_id = ANY($2)`,
		hours.To, []uuid.UUID{teams[silent], teams[other]})
	f.exec(t, `UPDATE devices SET latest_bucket_at = NULL WHERE team_id = $1`, teams[silent])
	f.exec(t, `UPDATE devices SET latest_bucket_at = $1::timestamptz - INTERVAL '40 days' WHERE team_id = $2`, hours.To, teams[other])
	f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', $1 FROM devices`, hours.From)

	together, err := f.CurrentTeams(t.Context(), teams, q, hours)
	require.NoError(t, err)
	for i, team := range teams {
		alone, err := f.CurrentDevices(t.Context(), team, roomsensor.DeviceQuery{Limit: 100}, hours)
		require.NoError(t, err)
		switch i {
		case large, tagged, silent:
			require.Nil(t, together[i], i)
			require.NotEmpty(t, alone)
			ofTeam, _, err := f.CurrentTeam(t.Context(), team, q, hours)
			require.NoError(t, err)
			require.Equal(t, i == silent, ofTeam != nil, i)
		default:
			require.Equal(t, alone, together[i], i)
		}
		if i == all || i == other {
			require.NotNil(t, together[i][0].Latest)
			require.NotNil(t, together[i][0].ActiveAssignment)
		}
	}
	require.Empty(t, together[none])
	require.EqualValues(t, 56, together[all][0].Last24h[roomsensor.Temp].Count, "without NaN")
}

// TestCurrentTeamsDoNotWait checks that teams do not wait for an old chunk that is locked, of which another team needs the
// newest reading of a silent device. The sessions of this store would wait until the statement times out.
func TestCurrentTeamsDoNotWait(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.newTeam(t, 1, 100)
	f.write(t, co2(f.device, "2018-05-01T00:00:00Z", 1))
	lock, err := f.sql.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(context.Background()) }()
	_, err = lock.Exec(t.Context(), `DO $$ BEGIN EXECUTE 'LOCK TABLE ' || (SELECT show_chunks('readings') LIMIT 1); END $$`)
	require.NoError(t, err)
	q := roomsensor.DeviceQuery{Limit: 100}
	patient := open(t, f.url+"&lock_timeout=0", store.Ingest)
	_, err = patient.CurrentTeams(t.Context(), []uuid.UUID{f.team, other}, q, roomsensor.SummaryWindow(at(now)))
	var timeout *pgconn.PgError
	require.ErrorAs(t, err, &timeout)
	require.Equal(t, "55P03", timeout.Code)
	together, err := patient.CurrentTeams(t.Context(), []uuid.UUID{other}, q, roomsensor.SummaryWindow(at(now)))
	require.NoError(t, err)
	require.Len(t, together[0], 1)
}
