package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

// Fleet is the senders of a trial.
type Fleet struct {
	Now   time.Time // no reading is newer
	Teams []Team
	Units []*ledger.Unit
	// Excluded are devices with readings that are not in the ledger.
	Excluded []uuid.UUID
}

// Team is a team with an ingest key, an API key and a source.
type Team struct {
	ID         uuid.UUID
	Credential string
	Key        string
	Source     Source
}

// Source is a source of the format roomsensor, and its key.
type Source struct {
	ID  uuid.UUID `json:"source_id"`
	Key string    `json:"key"`
}

// swapAge is the age of the installation of the present unit in the first device of each team.
const swapAge = 38 * 24 * time.Hour

// CreateFleet migrates the database and creates teams and devices. The first device of each team gets a second unit, so
// that the unit of a reading of that device depends on its time.
func (s *Service) CreateFleet(ctx context.Context, o *Options) (*Fleet, error) {
	if err := s.Command(ctx, nil, "migrate", "up"); err != nil {
		return nil, err
	}
	f := &Fleet{Now: time.Now().UTC().Truncate(time.Microsecond), Teams: make([]Team, o.Teams)}
	devices := make([][]Device, o.Teams)
	for i := range o.Units {
		u := &ledger.Unit{HardwareID: hardwareID(i), Team: i % o.Teams, Device: uuid.New()}
		f.Units = append(f.Units, u)
		devices[u.Team] = append(devices[u.Team], Device{u.Device, u.HardwareID, fmt.Sprintf("Room %d", i+1), nil})
	}
	err := s.Query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		for i := range f.Teams {
			if f.Teams[i], err = InsertTeamWithKeys(ctx, conn, fmt.Sprintf("Team %d", i+1), devices[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range f.Teams {
		t := &f.Teams[i]
		err := s.Command(ctx, &t.Source, "source", "create", "--team", t.ID.String(), "--name", "Trial",
			"--format", "roomsensor")
		if err != nil {
			return nil, err
		}
	}
	for i, u := range f.Units[:o.Teams] {
		next, err := s.swap(ctx, f, u, o.Units+i)
		if err != nil {
			return nil, err
		}
		f.Units = append(f.Units, next)
	}
	return f, nil
}

// InsertTeamWithKeys inserts a team with devices, an ingest key and an API key.
func InsertTeamWithKeys(ctx context.Context, conn *pgx.Conn, name string, devices []Device) (t Team, err error) {
	if t.ID, err = InsertTeam(ctx, conn, name, devices); err != nil {
		return t, err
	}
	if t.Credential, err = InsertIngestKey(ctx, conn, t.ID); err != nil {
		return t, err
	}
	keys, err := InsertAPIKeys(ctx, conn, t.ID, 1)
	if err == nil {
		t.Key = keys[0]
	}
	return t, err
}

func hardwareID(number int) string { return fmt.Sprintf("dev:8644750465%05d", number) }

// swap ends the assignment of a unit and assigns a new unit to its device.
func (s *Service) swap(ctx context.Context, f *Fleet, u *ledger.Unit, number int) (*ledger.Unit, error) {
	at := f.Now.Add(-swapAge).Truncate(roomsensor.BucketLength)
	next := *u
	next.HardwareID, next.From = hardwareID(number), at
	u.To = at
	return &next, s.Command(ctx, nil, "device", "replace-hardware", u.Device.String(),
		"--hardware-id", next.HardwareID, "--at", roomsensor.FormatTime(at))
}

// Database is a connection or a pool.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// Device is a device to insert, with one unbounded assignment.
type Device struct {
	ID         uuid.UUID
	HardwareID string
	Name       string
	Metadata   map[string]string
}

// InsertTeam inserts a team with devices.
func InsertTeam(ctx context.Context, db Database, name string, devices []Device) (team uuid.UUID, err error) {
	if err := db.QueryRow(ctx, "INSERT INTO teams (name) VALUES ($1) RETURNING id", name).Scan(&team); err != nil {
		return team, fmt.Errorf("inserting a team: %w", err)
	}
	_, err = db.CopyFrom(ctx, pgx.Identifier{"devices"},
		[]string{"id", "team_id", "hardware_id", "display_name", "metadata"},
		pgx.CopyFromSlice(len(devices), func(i int) ([]any, error) {
			d := &devices[i]
			metadata := d.Metadata
			if metadata == nil {
				metadata = map[string]string{} // nil would be NULL.
			}
			return []any{d.ID, team, d.HardwareID, d.Name, metadata}, nil
		}))
	if err != nil {
		return team, fmt.Errorf("inserting devices: %w", err)
	}
	_, err = db.CopyFrom(ctx, pgx.Identifier{"device_hardware"}, []string{"hardware_id", "device_id"},
		pgx.CopyFromSlice(len(devices), func(i int) ([]any, error) {
			return []any{devices[i].HardwareID, devices[i].ID}, nil
		}))
	if err != nil {
		return team, fmt.Errorf("inserting assignments: %w", err)
	}
	return team, nil
}

// InsertAPIKeys inserts n API keys with the scope read_write.
func InsertAPIKeys(ctx context.Context, db Database, team uuid.UUID, n int) (keys []string, err error) {
	keys = make([]string, n)
	_, err = db.CopyFrom(ctx, pgx.Identifier{"api_keys"}, []string{"key_id", "team_id", "secret_sha256", "scope"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			id, key, sum := roomsensor.GenerateKey(roomsensor.APIKey)
			keys[i] = key
			return []any{id, team, sum[:], string(roomsensor.ScopeReadWrite)}, nil
		}))
	if err != nil {
		return nil, fmt.Errorf("inserting API keys: %w", err)
	}
	return keys, nil
}

// InsertIngestKey inserts a credential of the receiver.
func InsertIngestKey(ctx context.Context, db Database, team uuid.UUID) (key string, err error) {
	id, key, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err = db.Exec(ctx, "INSERT INTO ingest_keys (key_id, team_id, secret_sha256) VALUES ($1, $2, $3)",
		id, team, sum[:])
	if err != nil {
		return "", fmt.Errorf("inserting an ingest key: %w", err)
	}
	return key, nil
}

// CreateDatabase creates an empty database on a server. The environment drops it when it closes.
func (e *Env) CreateDatabase(ctx context.Context, server string) (address string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("reading the URL of the database server: %w", err)
	}
	name := fmt.Sprintf("trial_%08x", rand.Uint32()) //nolint:gosec // It is not a secret.
	if err := execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	e.OnClose(func(ctx context.Context) error { return execute(ctx, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String(), nil
}

func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("connecting to the database server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("executing %s: %w", sql, err)
	}
	return nil
}
