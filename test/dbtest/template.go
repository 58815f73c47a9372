package dbtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"

	"github.com/jackc/pgx/v5"

	"roomsensor/schema"
)

// template returns the name of the migrated database to copy. The first process creates it for all others.
func (s *server) template(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return s.templateName, nil
	}
	if err := s.createOnce(ctx, s.templateName); err != nil {
		return "", err
	}
	s.ready = true
	return s.templateName, nil
}

// nameTemplate derives the name of the template from the migrations and the version and edition of TimescaleDB.
func (s *server) nameTemplate(ctx context.Context) error {
	fingerprint, err := schema.Fingerprint()
	if err != nil {
		return err
	}
	var extension string
	err = s.session.QueryRow(ctx, `
		SELECT default_version || ' ' || coalesce(current_setting('timescaledb.license', true), '')
		FROM pg_available_extensions WHERE name = 'timescaledb'`).Scan(&extension)
	if err != nil {
		return fmt.Errorf("reading the version of TimescaleDB: %w", err)
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, fingerprint+extension) // A hash never returns an error.
	s.templateKey = int32(h.Sum32() & math.MaxInt32)
	s.templateName = fmt.Sprintf("%s%08x", templatePrefix, s.templateKey)
	return nil
}

// createOnce creates the template if it does not exist, under a lock, because several test binaries run at once.
func (s *server) createOnce(ctx context.Context, name string) (err error) {
	_, err = s.session.Exec(ctx, "SELECT pg_advisory_lock($1, $2)", makingClass, s.templateKey)
	if err != nil {
		return fmt.Errorf("locking the template: %w", err)
	}
	defer func() {
		_, unlockErr := s.session.Exec(context.WithoutCancel(ctx),
			"SELECT pg_advisory_unlock($1, $2)", makingClass, s.templateKey)
		err = errors.Join(err, unlockErr)
	}()
	var unfinished bool
	err = s.session.QueryRow(ctx, "SELECT datallowconn FROM pg_database WHERE datname = $1", name).Scan(&unfinished)
	if err == nil && !unfinished {
		return nil
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("checking for the template: %w", err)
	}
	if err := s.dropIfExists(ctx, name); err != nil {
		return err
	}
	return s.createTemplate(ctx, name)
}

// createTemplate creates and migrates the template. As soon as it is finished, it allows no connections. Until then,
// IS_TEMPLATE keeps TimescaleDB's scheduler from connecting to it.
func (s *server) createTemplate(ctx context.Context, name string) error {
	if err := s.create(ctx, name, "template0"); err != nil {
		return err
	}
	if err := s.alter(ctx, name, "IS_TEMPLATE true"); err != nil {
		return err
	}
	if err := schema.Up(ctx, s.urlOf(name), schema.Layout{}); err != nil {
		return fmt.Errorf("migrating the template: %w", err)
	}
	if err := s.ensureRoles(ctx, name); err != nil {
		return err
	}
	if err := s.unschedule(ctx, name); err != nil {
		return err
	}
	return s.alter(ctx, name, "ALLOW_CONNECTIONS false")
}

// unschedule keeps the scheduler, which a server of TEST_DATABASE_URL may have, from refreshing readings_hourly in the
// databases of tests: a test that does so itself would fail meanwhile.
func (s *server) unschedule(ctx context.Context, name string) (err error) {
	conn, err := pgx.Connect(ctx, s.urlOf(name))
	if err != nil {
		return fmt.Errorf("connecting to the template: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, `SELECT alter_job(job_id, scheduled => false) FROM timescaledb_information.jobs
		WHERE proc_name = 'policy_refresh_continuous_aggregate'`)
	if err != nil {
		return fmt.Errorf("stopping the refresh of readings_hourly: %w", err)
	}
	return nil
}

// ensureRoles creates the roles of the processes, which all databases of the server share. The lock serializes the
// processes that create another template, because they change the same rows of the catalog.
func (s *server) ensureRoles(ctx context.Context, name string) (err error) {
	if _, err = s.session.Exec(ctx, "SELECT pg_advisory_lock($1, 0)", rolesClass); err != nil {
		return fmt.Errorf("locking the roles: %w", err)
	}
	defer func() {
		_, unlockErr := s.session.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1, 0)", rolesClass)
		err = errors.Join(err, unlockErr)
	}()
	return schema.EnsureRoles(ctx, s.urlOf(name), roles)
}

func (s *server) alter(ctx context.Context, name, option string) error {
	if _, err := s.session.Exec(ctx, "ALTER DATABASE "+quote(name)+" "+option); err != nil {
		return fmt.Errorf("altering the template: %w", err)
	}
	return nil
}

// dropIfExists drops a database, which may be a template.
func (s *server) dropIfExists(ctx context.Context, name string) error {
	var exists bool
	err := s.session.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil {
		return fmt.Errorf("checking for the template: %w", err)
	}
	if !exists {
		return nil
	}
	if err := s.alter(ctx, name, "IS_TEMPLATE false"); err != nil {
		return err
	}
	return s.drop(ctx, name)
}
