package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

// register inserts teams, keys and devices.
func (e *env) register(ctx context.Context) error {
	began := time.Now()
	conn, err := pgx.Connect(ctx, e.service.DatabaseURL())
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	teams := make([]uuid.UUID, e.options.Teams)
	for i := range teams {
		team, err := harness.InsertTeamWithKeys(ctx, conn, fmt.Sprintf("Team %d", i+1), nil)
		if err != nil {
			return err
		}
		teams[i] = team.ID
		e.credentials, e.apiKeys = append(e.credentials, team.Credential), append(e.apiKeys, team.Key)
	}
	if err := e.registerDevices(ctx, conn, teams); err != nil {
		return err
	}
	if e.options.History > 0 {
		if err := e.insertHistory(ctx, conn); err != nil {
			return err
		}
	}
	e.registered = time.Since(began)
	e.Logf("registered %d devices of %d teams in %s", e.options.Devices, e.options.Teams, harness.Seconds(e.registered))
	return nil
}

// registerDevices inserts the devices with one statement per table, team by team, as teams register their devices. They
// have no entries in the audit log: that is what a fleet looks like that was registered long ago.
func (e *env) registerDevices(ctx context.Context, conn *pgx.Conn, teams []uuid.UUID) error {
	seed, n := fmt.Sprint(e.plan.seed), e.plan.devices
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		add, err := dropExclusions(ctx, tx)
		if err != nil {
			return err
		}
		for _, statement := range []struct {
			sql  string
			args []any
		}{
			{"SET LOCAL session_replication_role = replica", nil},
			{`INSERT INTO devices (id, team_id, hardware_id, display_name)
				SELECT ` + deviceIDSQL + `, ($3::uuid[])[i % cardinality($3::uuid[]) + 1], ` + hardwareIDSQL + `, 'Room ' || i
				FROM generate_series(0, $2::bigint - 1) i
				ORDER BY i % cardinality($3::uuid[]), i`, []any{seed, n, teams}},
			{"INSERT INTO device_state (device_id) SELECT id FROM devices ORDER BY team_id, id", nil},
			{`INSERT INTO device_hardware (hardware_id, device_id)
				SELECT ` + hardwareIDSQL + `, ` + deviceIDSQL + ` FROM generate_series(0, $2::bigint - 1) i`, []any{seed, n}},
			{add, nil},
		} {
			if _, err := tx.Exec(ctx, statement.sql, statement.args...); err != nil {
				return err //nolint:wrapcheck // Wrapped below.
			}
		}
		return nil
	})
	if err == nil {
		_, err = conn.Exec(ctx, "VACUUM (ANALYZE) devices, device_state, device_hardware, teams, api_keys, ingest_keys")
	}
	if err != nil {
		return fmt.Errorf("registering devices: %w", err)
	}
	return nil
}

// history returns the time for which all devices have readings before the trial.
func (e *env) history() roomsensor.Window {
	until := e.plan.historyEnd()
	return roomsensor.Window{From: until.Add(-e.options.History), To: until}
}

// insertHistory inserts readings before the trial, in the order of time and hour by hour. No trigger marks them, as if
// only workers had stored them.
func (e *env) insertHistory(ctx context.Context, conn *pgx.Conn) error {
	window := e.history()
	for from := window.From; from.Before(window.To); from = from.Add(time.Hour) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
				return err //nolint:wrapcheck // Wrapped below.
			}
			_, err := tx.Exec(ctx, `
				INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
				SELECT `+deviceIDSQL+`, t.at, t.at + INTERVAL '1 minute', 400 + (i + n) % 900, 18 + (i + n) % 80 / 10.0,
					20 + (i + n) % 400 / 10.0, (i + n) % 900, 30 + (i + n) % 40
				FROM generate_series(0, 11) n, LATERAL (SELECT $3::timestamptz + n * INTERVAL '5 minutes' AS at) t,
					generate_series(0, $2::bigint - 1) i
				ORDER BY n, i`, fmt.Sprint(e.plan.seed), e.plan.devices, from)
			return err //nolint:wrapcheck // Wrapped below.
		})
		if err != nil {
			return fmt.Errorf("inserting the history: %w", err)
		}
	}
	_, err := conn.Exec(ctx, "SELECT refresh_device_state($1, $2)", window.To.Add(-time.Hour), window.To)
	if err != nil {
		return fmt.Errorf("finding the newest readings: %w", err)
	}
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE) readings, device_state"); err != nil {
		return fmt.Errorf("analyzing the history: %w", err)
	}
	return nil
}

// dropExclusions drops the exclusion constraints of device_hardware, and returns the statement that adds them again. To
// build an index takes half as long as to insert a million rows into it.
func dropExclusions(ctx context.Context, tx pgx.Tx) (add string, err error) {
	var drop string
	err = tx.QueryRow(ctx, `
		SELECT 'ALTER TABLE device_hardware ' || string_agg(format('DROP CONSTRAINT %I', conname), ', '),
			'ALTER TABLE device_hardware ' ||
				string_agg(format('ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)), ', ')
		FROM pg_constraint WHERE conrelid = 'device_hardware'::regclass AND contype = 'x'`).Scan(&drop, &add)
	if err == nil {
		_, err = tx.Exec(ctx, drop)
	}
	return add, err //nolint:wrapcheck // Wrapped by registerDevices.
}

// verifyIDs checks that SQL and plan compute the same ids: otherwise every reading would be of an unknown device.
func (e *env) verifyIDs(ctx context.Context) error {
	last := e.plan.devices - 1
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var id uuid.UUID
		err := conn.QueryRow(ctx, "SELECT device_id FROM device_hardware WHERE hardware_id = $1",
			fmt.Sprintf(hardwareFormat, last)).Scan(&id)
		if err == nil && id != e.plan.deviceID(last) {
			err = fmt.Errorf("device %d has another id", last)
		}
		if err != nil {
			return fmt.Errorf("checking the registered devices: %w", err)
		}
		return nil
	})
}
