package env

import (
	"context"
	"crypto/md5" //nolint:gosec // It derives team ids in Go and in SQL; it protects nothing.
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
)

// Teams are many small teams in a database of their own, each with an API key and an ingest key.
type Teams struct {
	*Env                   // with that database
	Fleet      fleet.Fleet // of all teams together
	Number     int
	APIKeys    []string // of each team
	IngestKeys []string // of each team
}

// OpenTeams creates a database with teams of as many devices each. Devices in a row belong to different teams.
func (e *Env) OpenTeams(ctx context.Context, number, devices int, f *fleet.Fleet) (t *Teams, err error) {
	began := time.Now()
	t = &Teams{Fleet: *f, Number: number}
	t.Fleet.Devices, t.Fleet.Deep = number*devices, number*devices
	if t.Env, err = e.WithNewDatabase(ctx); err != nil {
		return nil, err
	}
	if err := t.insert(ctx); err != nil {
		return nil, err
	}
	t.Logf("registered %d devices of %d teams in %.1f s", t.Fleet.Devices, number, time.Since(began).Seconds())
	return t, t.Vacuum(ctx)
}

// Team returns the number of the team of the i-th device.
func (t *Teams) Team(i int) int { return i % t.Number }

// insert registers teams, devices and keys.
func (t *Teams) insert(ctx context.Context) error {
	return t.withoutAudit(ctx, []string{"teams", "devices", "api_keys", "ingest_keys"}, func(tx pgx.Tx) (err error) {
		_, err = tx.Exec(ctx, "INSERT INTO teams (id, name) SELECT "+t.teamIDSQL("i")+", 'Team ' || i"+
			" FROM generate_series(0, $1 - 1) i", t.Number)
		if err != nil {
			return fmt.Errorf("inserting teams: %w", err)
		}
		_, err = tx.Exec(ctx, "INSERT INTO devices (id, team_id, hardware_id, display_name, metadata) SELECT "+
			t.Fleet.DeviceIDSQL("i")+", "+t.teamIDSQL("i % $2")+", "+t.Fleet.HardwareIDSQL("i")+
			", 'Room ' || i, jsonb_build_object('building', 'b' || i % 10) FROM generate_series(0, $1 - 1) i",
			t.Fleet.Devices, t.Number)
		if err != nil {
			return fmt.Errorf("inserting devices: %w", err)
		}
		if _, err = tx.Exec(ctx, "UPDATE device_state SET last_seen_at = $1", t.Fleet.Until); err != nil {
			return fmt.Errorf("setting last_seen_at: %w", err)
		}
		if t.APIKeys, err = t.insertKeys(ctx, tx, "api_keys", roomsensor.APIKey); err != nil {
			return err
		}
		t.IngestKeys, err = t.insertKeys(ctx, tx, "ingest_keys", roomsensor.IngestKey)
		return err
	})
}

// InstallUnits installs a unit in every device, so that uploads of it are accepted.
func (t *Teams) InstallUnits(ctx context.Context) error {
	began := time.Now()
	err := t.withoutAudit(ctx, []string{"device_hardware"}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO device_hardware (device_id, hardware_id) SELECT "+t.Fleet.DeviceIDSQL("i")+", "+
			t.Fleet.HardwareIDSQL("i")+" FROM generate_series(0, $1 - 1) i", t.Fleet.Devices)
		return err //nolint:wrapcheck // Wrapped below.
	})
	if err != nil {
		return fmt.Errorf("installing units: %w", err)
	}
	t.Logf("installed %d units in %.1f s", t.Fleet.Devices, time.Since(began).Seconds())
	return nil
}

// withoutAudit runs a transaction that writes tables without an entry of the audit log per row.
func (t *Teams) withoutAudit(ctx context.Context, tables []string, write func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, t.Pool, func(tx pgx.Tx) error {
		for _, table := range tables {
			if _, err := tx.Exec(ctx, "ALTER TABLE "+table+" DISABLE TRIGGER audit"); err != nil {
				return fmt.Errorf("disabling the audit log: %w", err)
			}
		}
		if err := write(tx); err != nil {
			return err
		}
		for _, table := range tables {
			if _, err := tx.Exec(ctx, "ALTER TABLE "+table+" ENABLE TRIGGER audit"); err != nil {
				return fmt.Errorf("enabling the audit log: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("registering teams: %w", err)
	}
	return nil
}

// teamID returns the id of a team, as teamIDSQL does.
func (t *Teams) teamID(team int) uuid.UUID {
	return md5.Sum(fmt.Appendf(nil, "%d team %d", t.Fleet.Seed, team)) //nolint:gosec // See the import.
}

func (t *Teams) teamIDSQL(team string) string {
	return fmt.Sprintf("md5('%d team ' || %s)::uuid", t.Fleet.Seed, team)
}

// insertKeys inserts a key of each team.
func (t *Teams) insertKeys(ctx context.Context, tx pgx.Tx, table string, kind roomsensor.KeyKind) ([]string, error) {
	keys := make([]string, t.Number)
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, []string{"key_id", "team_id", "secret_sha256"},
		pgx.CopyFromSlice(t.Number, func(i int) ([]any, error) {
			id, key, sum := roomsensor.GenerateKey(kind)
			keys[i] = key
			return []any{id, t.teamID(i), sum[:]}, nil
		}))
	if err != nil {
		return nil, fmt.Errorf("inserting keys: %w", err)
	}
	return keys, nil
}

// Load stores a reading of every device at the start of each step of a window, and prepares the devices as a worker
// does after an import.
func (t *Teams) Load(ctx context.Context, w roomsensor.Window, step time.Duration) (err error) {
	began, rows := time.Now(), 0
	for at := w.From; at.Before(w.To); at = at.Add(step) {
		bucket := roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)}
		if err := t.loadChunk(ctx, &t.Fleet, bucket); err != nil {
			return err
		}
		rows += t.Fleet.Devices
	}
	if err := CheckStored(ctx, t.Pool, w, rows); err != nil {
		return err
	}
	t.Logf("loaded %d readings of %d teams in %.1f s", rows, t.Number, time.Since(began).Seconds())
	return t.Vacuum(ctx)
}
