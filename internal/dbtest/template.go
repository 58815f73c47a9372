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

// template returns the name of a migrated database to copy. The first process makes it, for all others and later ones.
func (s *server) template(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return s.templateName, nil
	}
	if err := s.makeOnce(ctx, s.templateName); err != nil {
		return "", err
	}
	s.ready = true
	return s.templateName, nil
}

// nameTemplate makes a name of what decides about the content of the template: the migrations and the TimescaleDB.
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
		return fmt.Errorf("asking for the version of TimescaleDB: %w", err)
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, fingerprint+extension) // A hash takes everything.
	s.templateKey = int32(h.Sum32() & math.MaxInt32)
	s.templateName = fmt.Sprintf("%s%08x", templatePrefix, s.templateKey)
	return nil
}

// makeOnce makes the template unless it is there, under a lock: test binaries run side by side.
func (s *server) makeOnce(ctx context.Context, name string) (err error) {
	_, err = s.session.Exec(ctx, "SELECT pg_advisory_lock($1, $2)", makingClass, s.templateKey)
	if err != nil {
		return fmt.Errorf("locking the making of the template: %w", err)
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
		return fmt.Errorf("looking for the template: %w", err)
	}
	if err := s.dropTemplate(ctx, name); err != nil {
		return err
	}
	return s.make(ctx, name)
}

// make migrates a new database. That it takes no connections any more says that it is finished, and keeps TimescaleDB's
// scheduler out of it, as being a template does until then.
func (s *server) make(ctx context.Context, name string) error {
	if err := s.create(ctx, name, "template0"); err != nil {
		return err
	}
	if err := s.alter(ctx, name, "IS_TEMPLATE true"); err != nil {
		return err
	}
	if err := schema.Up(ctx, s.urlOf(name), schema.Layout{}); err != nil {
		return fmt.Errorf("migrating the template: %w", err)
	}
	return s.alter(ctx, name, "ALLOW_CONNECTIONS false")
}

func (s *server) alter(ctx context.Context, name, option string) error {
	if _, err := s.session.Exec(ctx, "ALTER DATABASE "+quote(name)+" "+option); err != nil {
		return fmt.Errorf("altering the template: %w", err)
	}
	return nil
}

// dropTemplate drops a template, if it is there.
func (s *server) dropTemplate(ctx context.Context, name string) error {
	var there bool
	err := s.session.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil {
		return fmt.Errorf("looking for the template: %w", err)
	}
	if !there {
		return nil
	}
	if err := s.alter(ctx, name, "IS_TEMPLATE false"); err != nil {
		return err
	}
	return s.drop(ctx, name)
}
