package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// Reversal is what the reversal of the newest applied migration deletes.
type Reversal struct {
	Version  int64
	Name     string   // file name of the migration
	Tables   []string // that it drops
	Columns  []string // that it drops from other tables, as table.column
	NonEmpty []string // those of the tables, and of the tables of the columns, that contain rows
	Running  []Running
}

// Running is what is connected to the database of the processes of one kind.
type Running struct {
	Name        string // "roomsensor api"
	Connections int
}

// ErrNothingApplied means that no migration is applied.
var ErrNothingApplied = errors.New("no migration is applied")

// PlanDown returns what Down would delete, or ErrNothingApplied. It changes nothing.
func PlanDown(ctx context.Context, databaseURL string) (r Reversal, err error) {
	err = withProvider(ctx, databaseURL, reads, func(p *goose.Provider, pool *sql.DB) error {
		statuses, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("reading the status of migrations: %w", err)
		}
		for _, s := range slices.Backward(statuses) {
			if s.State == goose.StateApplied {
				r.Version, r.Name = s.Source.Version, s.Source.Path
				break
			}
		}
		if r.Version == 0 {
			return ErrNothingApplied
		}
		text, err := FS.ReadFile(r.Name)
		if err != nil {
			return fmt.Errorf("reading a migration: %w", err)
		}
		r.Tables, r.Columns = drops(string(text))
		if r.NonEmpty, err = nonEmpty(ctx, pool, r); err != nil {
			return err
		}
		r.Running, err = running(ctx, pool)
		return err
	})
	return r, err
}

// running counts the connections of the processes of the service. Each pool of a process has its own application_name,
// such as "roomsensor api export"; that of the operator's commands is "roomsensor".
func running(ctx context.Context, pool *sql.DB) (found []Running, err error) {
	rows, err := pool.QueryContext(ctx, `SELECT substring(application_name FROM '^\S+ \S+') AS process, count(*)
		FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'roomsensor _%'
		GROUP BY process ORDER BY process`)
	if err != nil {
		return nil, fmt.Errorf("listing the connections: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r Running
		if err := rows.Scan(&r.Name, &r.Connections); err != nil {
			return nil, fmt.Errorf("listing the connections: %w", err)
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

var (
	dropTable  = regexp.MustCompile(`(?m)^DROP TABLE (\w+);`)
	dropColumn = regexp.MustCompile(`(?m)^ALTER TABLE (\w+) DROP COLUMN (\w+);`)
)

// drops returns the tables and columns that the Down part of a migration drops.
func drops(migration string) (tables, columns []string) {
	_, down, _ := strings.Cut(migration, "-- +goose Down")
	for _, match := range dropTable.FindAllStringSubmatch(down, -1) {
		tables = append(tables, match[1])
	}
	for _, match := range dropColumn.FindAllStringSubmatch(down, -1) {
		columns = append(columns, match[1]+"."+match[2])
	}
	return tables, columns
}

// nonEmpty returns the tables that contain rows and lose some or all of them.
func nonEmpty(ctx context.Context, pool *sql.DB, r Reversal) (tables []string, err error) {
	candidates := slices.Clone(r.Tables)
	for _, column := range r.Columns {
		table, _, _ := strings.Cut(column, ".")
		candidates = append(candidates, table)
	}
	for _, table := range candidates {
		var found bool
		query := "SELECT EXISTS (SELECT FROM " + pgx.Identifier{"public", table}.Sanitize() + ")"
		if err := pool.QueryRowContext(ctx, query).Scan(&found); err != nil {
			return nil, fmt.Errorf("looking for rows in %s: %w", table, err)
		}
		if found && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	return tables, nil
}
