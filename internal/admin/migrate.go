package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
	"roomsensor/schema"
)

// Migrations is the state of a database: its edition and its migrations.
type Migrations struct {
	Edition     *string     `json:"edition"` // apache or community; null before the first migration
	TimescaleDB *string     `json:"timescaledb_version"`
	UpToDate    bool        `json:"up_to_date"`
	Readings    *Layout     `json:"readings"` // null until all migrations are applied
	Warning     string      `json:"-"`        // full sentences for an operator, or nothing
	Data        []Migration `json:"data"`
}

// Migration is one migration and when it was applied.
type Migration struct {
	Version   int64   `json:"version"`
	Name      string  `json:"name"`
	AppliedAt *string `json:"applied_at"` // null if it is pending
}

// MigrateUp applies all pending migrations. Deployments run it while the database starts, so it tries to connect
// several times.
func MigrateUp(ctx context.Context, cfg config.Migration) (Migrations, error) {
	if err := cmp.Or(cfg.Layout.Validate(), cfg.Roles.Validate()); err != nil {
		return Migrations{}, err
	}
	err := process.Patiently(ctx, func() error { return pingDatabase(ctx, cfg.Database) })
	if err != nil {
		return Migrations{}, err
	}
	layout := schema.Layout{
		ChunkInterval:    max(0, time.Duration(cfg.ChunkInterval)),
		ColumnstoreAfter: time.Duration(cfg.ColumnstoreAfter), DropAfter: time.Duration(cfg.ReadingsKeep),
	}
	err = schema.Up(ctx, string(cfg.DatabaseURL), layout)
	if err == nil && cfg.ChunkInterval == config.ChunkIntervalAuto {
		if layout.ChunkInterval, err = fittingChunkInterval(ctx, cfg.Database); err == nil {
			err = schema.Up(ctx, string(cfg.DatabaseURL), layout)
		}
	}
	if errors.Is(err, schema.ErrBeforeFirstRelease) {
		return Migrations{}, process.ErrOldDatabase
	}
	if err != nil {
		return Migrations{}, process.Interrupted(ctx, explainMigration(ctx, cfg.Database, err))
	}
	if err := ensureRoles(ctx, cfg); err != nil {
		return Migrations{}, process.Interrupted(ctx, process.Refusef("The database was migrated, "+
			"but the roles of the processes are not up to date. "+
			"The role in --database-url (DATABASE_URL) must own the tables and have CREATEROLE: %v", err))
	}
	return MigrationStatus(ctx, cfg.Database)
}

// explainMigration says why the database could not be migrated.
func explainMigration(ctx context.Context, cfg config.Database, cause error) error {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err == nil {
		defer s.Close()
		if owner, err := s.Owner(ctx); err == nil && !owner.MayCreate {
			return process.Refusef("The database could not be migrated, because the role %s may not create tables in the "+
				"schema public: the database belongs to %s. Let an administrator run: %s; The error was: %v",
				owner.Tables, owner.Database, owner.Repair, cause)
		}
	}
	return process.Refusef("The database could not be migrated. Its server must be PostgreSQL 15 or later, and preload "+
		"TimescaleDB 2.19 or later, and the role must be allowed to create extensions: %v", cause)
}

// fittingChunkInterval returns the length of chunks that suits the fleet and the server.
func fittingChunkInterval(ctx context.Context, cfg config.Database) (time.Duration, error) {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	server, err := s.Server(ctx)
	if err != nil {
		return 0, err
	}
	chunk, err := s.FullChunk(ctx)
	if err != nil {
		return 0, err
	}
	return roomsensor.FittingChunkInterval(server.DailyIndexBytes(chunk), server.SharedBuffers), nil
}

// ensureRoles creates the roles of the processes, if the configuration names them, and grants their rights.
func ensureRoles(ctx context.Context, cfg config.Migration) error {
	if cfg.DatabaseRoles == "" {
		return nil
	}
	return schema.EnsureRoles(ctx, string(cfg.DatabaseURL), schema.Roles{
		Prefix: cfg.DatabaseRoles,
		Passwords: map[schema.Role]string{
			schema.RoleAPI:       string(cfg.DatabaseAPIPassword),
			schema.RoleWorker:    string(cfg.DatabaseWorkerPassword),
			schema.RoleReceiver:  string(cfg.DatabaseReceiverPassword),
			schema.RoleDashboard: string(cfg.DatabaseDashboardPassword),
			schema.RoleNotify:    string(cfg.DatabaseNotifyPassword),
		},
	})
}

// MigrationStatus returns the migrations and the edition of a database.
func MigrationStatus(ctx context.Context, cfg config.Database) (Migrations, error) {
	if err := pingDatabase(ctx, cfg); err != nil {
		return Migrations{}, err
	}
	steps, err := schema.Status(ctx, string(cfg.DatabaseURL))
	if errors.Is(err, schema.ErrBeforeFirstRelease) {
		return Migrations{}, process.ErrOldDatabase
	}
	if err != nil {
		return Migrations{}, process.Interrupted(ctx, err)
	}
	state := Migrations{UpToDate: true, Data: make([]Migration, len(steps))}
	for i, step := range steps {
		state.Data[i] = Migration{step.Version, step.Name, formatTime(step.AppliedAt)}
		state.UpToDate = state.UpToDate && step.AppliedAt != nil
	}
	return state, state.addEdition(ctx, cfg)
}

// addEdition adds the edition of TimescaleDB and, once the database is up to date, how the readings lie on disk.
func (m *Migrations) addEdition(ctx context.Context, cfg config.Database) error {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err != nil {
		return err
	}
	defer s.Close()
	database, err := s.Database(ctx)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return nil // The first migration creates the extension.
	}
	if err != nil {
		return fmt.Errorf("reading the edition: %w", err)
	}
	m.Edition, m.TimescaleDB = &database.Edition, &database.Version
	if needed := database.NeededLocks(); needed > 0 {
		m.Warning = fmt.Sprintf("The database has %d chunks, and its max_locks_per_transaction is %d. "+
			"Set it to %d and restart the database server. Queries may fail otherwise.",
			database.Chunks, database.MaxLocks, needed)
	}
	if !m.UpToDate {
		return nil
	}
	layout, err := s.Layout(ctx)
	if err != nil {
		return fmt.Errorf("reading the layout: %w", err)
	}
	m.Readings = viewLayout(layout, time.Now())
	return nil
}

// pingDatabase checks that the database answers, so that a wrong URL is not reported as a failed migration.
func pingDatabase(ctx context.Context, cfg config.Database) error {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Ping(ctx); err != nil {
		return process.ExplainDatabase(ctx, string(cfg.DatabaseURL), err)
	}
	return nil
}

// Layout is how the readings lie on disk: chunks, columnstore and continuous aggregate.
type Layout struct {
	Chunks      int64        `json:"chunks"`
	Interval    int64        `json:"chunk_interval_seconds"` // of new chunks
	Bytes       int64        `json:"bytes"`
	KeepSeconds *int64       `json:"keep_seconds"` // null: readings are kept permanently
	Columnstore *Columnstore `json:"columnstore"`  // null on the Apache edition
	Hourly      *Hourly      `json:"hourly"`       // null on the Apache edition
}

// Columnstore is the part of the readings that is stored as columns.
type Columnstore struct {
	AfterSeconds *int64   `json:"after_seconds"` // null: never
	Chunks       int64    `json:"chunks"`
	BytesBefore  int64    `json:"bytes_before"`
	Bytes        int64    `json:"bytes"`
	Ratio        *float64 `json:"compression_ratio"` // null while nothing is compressed
}

// Hourly is the state of the continuous aggregate. A lag of a little more than two days is normal: queries aggregate
// younger readings directly.
type Hourly struct {
	MaterializedUntil *string `json:"materialized_until"`
	LagSeconds        *int64  `json:"lag_seconds"`
	RefreshedAt       *string `json:"refreshed_at"`
}

func viewLayout(l ops.Layout, now time.Time) *Layout {
	layout := &Layout{
		Chunks: l.Chunks, Interval: int64(l.ChunkInterval.Seconds()), Bytes: l.Bytes, KeepSeconds: secondsOrNull(l.DropAfter),
	}
	if c := l.Columnstore; c != nil {
		layout.Columnstore = &Columnstore{
			AfterSeconds: secondsOrNull(c.After), Chunks: c.Chunks, BytesBefore: c.BytesBefore, Bytes: c.Bytes,
		}
		if c.Bytes > 0 {
			layout.Columnstore.Ratio = new(float64(c.BytesBefore) / float64(c.Bytes))
		}
	}
	if h := l.Hourly; h != nil {
		layout.Hourly = &Hourly{MaterializedUntil: formatTime(h.MaterializedUntil), RefreshedAt: formatTime(h.RefreshedAt)}
		if h.MaterializedUntil != nil {
			layout.Hourly.LagSeconds = new(int64(now.Sub(*h.MaterializedUntil).Seconds()))
		}
	}
	return layout
}

// secondsOrNull returns an age in seconds, and nil for 0, which means never.
func secondsOrNull(age time.Duration) *int64 {
	if age == 0 {
		return nil
	}
	return new(int64(age.Seconds()))
}
