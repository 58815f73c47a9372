package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/fleet"
)

// addHistory stores readings of a device: 100 days with a gap of a year before the last one.
func (f *fixture) addHistory(t *testing.T, device uuid.UUID) (readings int64) {
	t.Helper()
	const insert = `INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT $1, at, 400 FROM generate_series(TIMESTAMPTZ '2024-01-01Z', '2024-04-09Z', INTERVAL '6 hours') at`
	f.Exec(t, insert, device)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2025-04-10Z')`, device)
	return 99*4 + 1 + 1
}

func TestDeleteDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.NewDevice(t, "dev:2")
	readings := f.addHistory(t, f.DeviceID)
	require.Equal(t, readings, f.addHistory(t, other))
	f.start(t, f.DeviceID, "x", time.Now())
	want := fleet.DeviceContents{Readings: readings, Assignments: 1, Installations: 1}
	contents, err := f.DeviceContents(t.Context(), f.DeviceID)
	require.NoError(t, err)
	require.Equal(t, want, contents)

	writes := f.Number(t, `SELECT count(*) FROM foreign_writes`)
	deleted, err := f.DeleteDevice(t.Context(), f.DeviceID)
	require.NoError(t, err)
	require.Equal(t, want, deleted)
	require.Equal(t, writes, f.Number(t, `SELECT count(*) FROM foreign_writes`), "it concerns no other device")
	contents, err = f.DeviceContents(t.Context(), f.DeviceID)
	require.NoError(t, err)
	require.Zero(t, contents)
	_, err = f.OwnedDevice(t.Context(), f.DeviceID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.DeleteDevice(t.Context(), f.DeviceID)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)

	contents, err = f.DeviceContents(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, fleet.DeviceContents{Readings: readings, Installations: 1}, contents)
}

// A worker that resolved the unit before the deletion stores no reading after it, whichever transaction comes first.
func TestDeleteDeviceDuringWrite(t *testing.T) {
	t.Parallel()
	f := setup(t)
	batch := func(device uuid.UUID) roomsensor.Batch {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		return roomsensor.Batch{
			Rows: []roomsensor.DeviceMeasurement{{DeviceID: device, Measurement: roomsensor.Measurement{MeasuredAt: at}}},
			Seen: []roomsensor.DeviceHeartbeat{{DeviceID: device, LastSeenAt: at}},
		}
	}

	// The worker comes first: a transaction holds what WriteBatch locks, and has stored a reading.
	writing, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	_, err = writing.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-01-01Z')`, f.DeviceID)
	require.NoError(t, err)
	_, err = writing.Exec(t.Context(), `SELECT FROM device_state WHERE device_id = $1 FOR NO KEY UPDATE`, f.DeviceID)
	require.NoError(t, err)
	done := make(chan error, 1)
	deleting := open(t, f.URL, store.Operator)
	go func() {
		_, err := deleting.DeleteDevice(context.WithoutCancel(t.Context()), f.DeviceID)
		done <- err
	}()
	require.Eventually(t, func() bool {
		var waits bool
		require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DeviceLockForDelete%')`).Scan(&waits))
		return waits
	}, patience, 10*time.Millisecond)
	require.NoError(t, writing.Commit(t.Context()))
	require.NoError(t, <-done)
	contents, err := f.DeviceContents(t.Context(), f.DeviceID)
	require.NoError(t, err)
	require.Zero(t, contents)

	// The deletion comes first. A unit that is in another device now has readings of the time before, but no heartbeat.
	past := batch(f.DeviceID)
	past.Seen = nil
	for _, b := range []roomsensor.Batch{batch(f.DeviceID), past} {
		_, err = f.WriteBatch(t.Context(), b)
		requireCode(t, err, roomsensor.CodeOverloaded)
	}
	contents, err = f.DeviceContents(t.Context(), f.DeviceID)
	require.NoError(t, err)
	require.Zero(t, contents)
	_, err = f.WriteBatch(t.Context(), batch(f.NewDevice(t, "dev:2")))
	require.NoError(t, err)
}

// teamRows are the rows of a team in all tables, by table.
type teamRows struct {
	team    uuid.UUID
	devices []uuid.UUID
	keys    []string
}

// addTeam creates a team with rows in every table that can have rows of a team.
func (f *fixture) addTeam(t *testing.T, name string) (r teamRows) {
	t.Helper()
	team, err := f.CreateTeam(t.Context(), name)
	require.NoError(t, err)
	r.team = team.ID
	for i := range 2 {
		d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: r.team, HardwareID: fmt.Sprintf("dev:%d%d", len(name), i)}, time.Now())
		require.NoError(t, err)
		r.devices = append(r.devices, d.ID)
		f.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at) VALUES ($1, 'place', 'x', now())`, d.ID)
		f.Exec(t, `INSERT INTO readings (device_id, bucket_at) VALUES ($1, '2026-01-01Z')`, d.ID)
		f.Exec(t, `INSERT INTO samples (device_id, measured_at) VALUES ($1, '2026-01-01Z')`, d.ID)
		key := name + string(rune('a'+i))
		r.keys = append(r.keys, key)
		f.Exec(t, `INSERT INTO api_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, sha256(''))`, key, r.team)
		f.Exec(t, `INSERT INTO ingest_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, sha256(''))`, key, r.team)
		f.Exec(t, `INSERT INTO api_key_uses (key_id, used_at) VALUES ($1, now())`, key)
		f.Exec(t, `INSERT INTO ingest_key_uses (key_id, used_at) VALUES ($1, now())`, key)
		f.Exec(t, `INSERT INTO idempotency_keys (key_id, method, path, idempotency_key, body_sha256) VALUES ($1, 'PATCH', '/', 'x', '')`, key)
		f.Exec(t, `INSERT INTO idempotency_bytes (key_id, hour, bytes) VALUES ($1, now(), 1)`, key)
		f.Exec(t, `INSERT INTO rate_windows (key_id, slot, hit_at) VALUES ($1, 0, now())`, key)
		f.Exec(t, `INSERT INTO rate_counters (key_id, passed, over) VALUES ($1, 1, 0)`, key)
	}
	f.Exec(t, `WITH added AS (INSERT INTO users (email) VALUES ($2) RETURNING id),
		joined AS (INSERT INTO memberships (user_id, team_id, role) SELECT id, $1, 'viewer' FROM added)
		INSERT INTO sign_in_links (token_sha256, user_id, team_id, role, purpose, expires_at)
		SELECT sha256(convert_to($2, 'UTF8')), id, $1, 'viewer', 'invitation', now() FROM added`, r.team, name)
	f.Exec(t, `WITH wanted AS (INSERT INTO mail_choices (user_id, team_id, alerts, morning, weekly)
			SELECT user_id, team_id, role <> '', role <> '', role <> '' FROM memberships WHERE team_id = $1 RETURNING user_id)
		INSERT INTO mails (team_id, user_id, kind) SELECT $1, user_id, 'alerts' FROM wanted`, r.team)
	f.Exec(t, `INSERT INTO alert_rounds (team_id) VALUES ($1)`, r.team)
	f.Exec(t, `INSERT INTO alerts (team_id, rule, subject, device_id, detail, since, noted_at) VALUES ($1, 'bad', 'x', $2, 'x', now(), now())`, r.team, r.devices[0])
	f.Exec(t, `INSERT INTO notes (team_id, device_id, at, text) VALUES ($1, $2, now(), 'x')`, r.team, r.devices[0])
	f.Exec(t, `INSERT INTO shared_links (token_sha256, team_id, made_by, device_ids, expires_at)
		SELECT sha256(convert_to($2, 'UTF8')), $1, user_id, '{}', now() FROM memberships WHERE team_id = $1`, r.team, name)
	f.Exec(t, `WITH s AS (INSERT INTO sources (team_id, name, format) VALUES ($1, 'x', 'tts') RETURNING id),
			k AS (UPDATE ingest_keys SET source_id = (SELECT id FROM s) WHERE team_id = $1),
			m AS (INSERT INTO source_state (source_id, last_received_at, precision) SELECT id, now(), '' FROM s)
		INSERT INTO source_hours (source_id, hour, messages, stored, rejected, ignored) SELECT id, now(), 1, 1, 0, 0 FROM s`, r.team)
	f.Exec(t, `INSERT INTO unit_aliases (team_id, alias_key, alias, hardware_id) VALUES ($1, 'x', 'x', 'dev:99')`, r.team)
	f.Exec(t, `INSERT INTO opened_chunks VALUES ($1, now(), now())`, r.team)
	f.Exec(t, `INSERT INTO feed_days (team_id, written_at, day) VALUES ($1, now(), now())`, r.team)
	f.Exec(t, `INSERT INTO feed_batches (team_id, effective_at, devices, device_ids, first_at, last_at)
		VALUES ($1, now(), 0, '{}', '{}', '{}')`, r.team)
	f.Exec(t, `INSERT INTO reading_deletions VALUES ($1, now(), $2, '2026-01-01Z', '2026-01-02Z', 1, 0)`, r.team, r.devices[0])
	f.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, payload)
		SELECT now(), n, 'unknown_unit', $2, $1, 'x' FROM generate_series(1, 250) n`, r.team, name)
	return r
}

// countTeamRows returns the rows of a team by table. It finds the tables in the catalog, so that a table that is added later
// is checked too. It leaves out the audit log and the shares of the stream, which outlive a team.
func (f *fixture) countTeamRows(t *testing.T, r teamRows) map[string]int {
	t.Helper()
	rows, err := f.SQL.Query(t.Context(), `
		SELECT c.table_name, c.column_name FROM information_schema.columns c
		JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.table_name NOT IN ('audit_log', 'stream_shares')
		  AND (c.column_name IN ('team_id', 'device_id', 'key_id') OR (c.table_name, c.column_name) = ('teams', 'id'))`)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Column string }])
	require.NoError(t, err)
	counts := map[string]int{}
	for _, c := range columns {
		var of any = []uuid.UUID{r.team}
		switch c.Column {
		case "device_id":
			of = r.devices
		case "key_id":
			of = r.keys
		}
		var n int
		require.NoError(t, f.SQL.QueryRow(t.Context(),
			fmt.Sprintf(`SELECT count(*) FROM %s WHERE %s = ANY($1)`, c.Table, c.Column), of).Scan(&n))
		counts[c.Table] = max(counts[c.Table], n)
	}
	return counts
}

func TestDeleteTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	deleted, kept := f.addTeam(t, "first"), f.addTeam(t, "second team")
	before := f.countTeamRows(t, deleted)
	require.Equal(t, before, f.countTeamRows(t, kept))
	for table, rows := range before {
		require.Positive(t, rows, "%s can have rows of a team: add some in addTeam, and let DeleteDevice or DeleteTeam delete them", table)
	}
	contents, err := f.TeamContents(t.Context(), deleted.team)
	require.NoError(t, err)
	want := fleet.TeamContents{
		DeviceContents: fleet.DeviceContents{Readings: 2, Assignments: 2, Installations: 2},
		Devices:        2, APIKeys: 2, IngestKeys: 2, Rejects: 250,
	}
	require.Equal(t, want, contents)

	wait, err := f.RevokeTeam(t.Context(), deleted.team)
	require.NoError(t, err)
	require.Greater(t, wait, roomsensor.RevokeDelay-time.Second)
	require.LessOrEqual(t, wait, roomsensor.RevokeDelay)
	keys, err := f.APIKeys(t.Context(), deleted.team)
	require.NoError(t, err)
	ingestKeys, err := f.TeamIngestKeys(t.Context(), deleted.team)
	require.NoError(t, err)
	for _, key := range append(keys, ingestKeys...) {
		require.NotNil(t, key.RevokedAt)
	}
	f.Exec(t, `UPDATE api_keys SET revoked_at = now() - INTERVAL '1 hour'`)
	f.Exec(t, `UPDATE ingest_keys SET revoked_at = now() - INTERVAL '1 hour'`)
	wait, err = f.RevokeTeam(t.Context(), deleted.team)
	require.NoError(t, err)
	require.Zero(t, wait, "a second run need not wait")

	_, err = f.DeleteTeam(t.Context(), deleted.team)
	require.Error(t, err, "it has devices")
	for _, device := range deleted.devices {
		_, err := f.DeleteDevice(t.Context(), device)
		require.NoError(t, err)
	}
	rest, err := f.DeleteTeam(t.Context(), deleted.team)
	require.NoError(t, err)
	require.Equal(t, fleet.TeamContents{IngestKeys: 2}, rest, "the failed run deleted the others")
	for table, rows := range f.countTeamRows(t, deleted) {
		require.Zero(t, rows, table)
	}
	require.Equal(t, before, f.countTeamRows(t, kept))
}
