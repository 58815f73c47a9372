// Package sqlite keeps a local copy in a SQLite file, without cgo.
//
// Other programs may read the file at any time: it is in WAL mode. Its tables are
//
//	readings     device_id, bucket_at, the five metrics, ingested_at; primary key (device_id, bucket_at)
//	devices      device_id, hardware_id, display_name, metadata (JSON), last_seen_at
//	assignments  assignment_id, type, label, home_or_travel, started_at, ended_at, external_ref, device_id, display_name
//	sync_state   one row: how far the copy is
//
// Times are texts such as 2026-11-20T09:50:00Z, which SQLite's date functions read. The times of assignments are
// rounded up to whole seconds, so that they and bucket_at sort like the times.
package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // The driver.

	"roomsensor/client"
	"roomsensor/client/internal/filelock"
	"roomsensor/client/localcopy"
)

const schema = `
CREATE TABLE readings (
	device_id    TEXT NOT NULL,
	bucket_at    TEXT NOT NULL,
	co2_ppm      REAL,
	temp_c       REAL,
	humidity_pct REAL,
	lux          REAL,
	spl_db       REAL,
	ingested_at  TEXT NOT NULL,
	PRIMARY KEY (device_id, bucket_at)
) WITHOUT ROWID;
CREATE TABLE devices (
	device_id    TEXT NOT NULL PRIMARY KEY,
	hardware_id  TEXT NOT NULL,
	display_name TEXT,
	metadata     TEXT NOT NULL,
	last_seen_at TEXT
) WITHOUT ROWID;
CREATE TABLE sync_state (
	only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
	state    TEXT NOT NULL
);
CREATE TABLE assignments (
	assignment_id  TEXT NOT NULL PRIMARY KEY,
	type           TEXT NOT NULL,
	label          TEXT NOT NULL,
	home_or_travel TEXT NOT NULL,
	started_at     TEXT NOT NULL,
	ended_at       TEXT,
	external_ref   TEXT,
	device_id      TEXT NOT NULL,
	display_name   TEXT
) WITHOUT ROWID;`

const (
	// countTables counts what a file contains, and the tables of a copy among it. The file may have more than those.
	countTables = `
SELECT count(*),
	count(*) FILTER (WHERE type = 'table' AND name IN ('readings', 'devices', 'sync_state', 'assignments'))
FROM sqlite_schema`
	copyTables = 4

	upsertReading = `
INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (device_id, bucket_at) DO UPDATE SET co2_ppm = excluded.co2_ppm, temp_c = excluded.temp_c,
	humidity_pct = excluded.humidity_pct, lux = excluded.lux, spl_db = excluded.spl_db,
	ingested_at = excluded.ingested_at`
	deleteReadings = `DELETE FROM readings WHERE device_id = ? AND bucket_at >= ? AND bucket_at < ?`
	insertDevice   = `
INSERT INTO devices (device_id, hardware_id, display_name, metadata, last_seen_at) VALUES (?, ?, ?, ?, ?)`
	insertAssignment = `
INSERT INTO assignments (assignment_id, type, label, home_or_travel, started_at, ended_at, external_ref, device_id,
	display_name)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	upsertState = `
INSERT INTO sync_state (only_row, state) VALUES (1, ?) ON CONFLICT (only_row) DO UPDATE SET state = excluded.state`

	// importRows is the number of rows of one transaction of an import.
	importRows = 50_000
)

// Store is a SQLite file.
type Store struct {
	db     *sql.DB
	path   string
	unlock func()
}

// ErrForeign is what Open returns for a database of another program, which it leaves as it is.
var ErrForeign = errors.New("the file is a database of another program. Give the name of a new file")

// Open opens a file, or creates it. One program at a time may write it.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, unlock: func() {}}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), s.Close())
	}
	return s, nil
}

// open writes nothing before it knows that the file is new or a copy.
func (s *Store) open(ctx context.Context) error {
	name, err := uri(s.path)
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", name); err != nil {
		return err //nolint:wrapcheck // Open wraps it.
	}
	s.db.SetMaxOpenConns(1)
	if _, err := s.isNew(ctx); err != nil {
		return err
	}
	unlock, err := filelock.Try(s.path + ".lock")
	if err != nil {
		return err
	}
	s.unlock = unlock
	if _, err := s.db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err //nolint:wrapcheck // Open wraps it.
	}
	isNew, err := s.isNew(ctx) // Again: the last holder of the lock may have created the tables since.
	if err != nil {
		return err
	}
	if !isNew {
		return nil
	}
	return s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, schema)
		return err //nolint:wrapcheck // The transaction wraps it.
	})
}

// uri returns the name of a file for SQLite, in which no character of the path has a meaning. SQLite takes what follows
// two slashes at the start of a path for a host, so that the path must be absolute.
func uri(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err //nolint:wrapcheck // It names the working directory.
	}
	name := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/"), RawQuery: url.Values{
		// 64 MiB of cache. What is deleted is overwritten: it can be the name of a person who was erased.
		"_pragma": {"busy_timeout(30000)", "synchronous(NORMAL)", "cache_size(-65536)", "secure_delete(ON)"},
		"_txlock": {"immediate"},
	}.Encode()}
	return name.String(), nil
}

// isNew reports whether a file is empty. It returns ErrForeign if it is not, and has no copy.
func (s *Store) isNew(ctx context.Context) (bool, error) {
	var all, ours int
	if err := s.db.QueryRowContext(ctx, countTables).Scan(&all, &ours); err != nil {
		return false, err //nolint:wrapcheck // Open wraps it.
	}
	if all > 0 && ours < copyTables {
		return false, ErrForeign
	}
	return all == 0, nil
}

// Close closes the file.
func (s *Store) Close() error {
	defer s.unlock()
	if s.db == nil {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", s.path, err)
	}
	return nil
}

// LoadDir is beside the file.
func (s *Store) LoadDir() string { return filepath.Clean(s.path) + ".load" }

// Batch makes every page of changes a transaction.
func (*Store) Batch() (rows int, age time.Duration) { return 0, 0 }

// State reads the state.
func (s *Store) State(ctx context.Context) (state localcopy.State, ok bool, err error) {
	var text string
	err = s.db.QueryRowContext(ctx, `SELECT state FROM sync_state`).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return state, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		return state, false, fmt.Errorf("reading %s: %w", s.path, err)
	}
	return state, true, nil
}

// Commit writes changes and the state in one transaction.
func (s *Store) Commit(ctx context.Context, changes localcopy.Changes, state localcopy.State) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		for _, d := range changes.Deleted {
			_, err := tx.ExecContext(ctx, deleteReadings, d.DeviceID.String(), formatTime(wholeSecond(d.From)),
				formatTime(wholeSecond(d.To)))
			if err != nil {
				return err //nolint:wrapcheck // The transaction wraps it.
			}
		}
		if err := write(ctx, tx, changes.Rows); err != nil {
			return err
		}
		return writeState(ctx, tx, state)
	})
}

func writeState(ctx context.Context, tx *sql.Tx, state localcopy.State) error {
	text, err := json.Marshal(state)
	if err == nil {
		_, err = tx.ExecContext(ctx, upsertState, string(text))
	}
	return err //nolint:wrapcheck // The transaction wraps it.
}

// Import writes rows in transactions of importRows, in the order of the primary key: in that of their time, each row
// would change another page of the file.
func (s *Store) Import(ctx context.Context, rows iter.Seq2[client.DeviceReading, error]) error {
	batch := make([]client.DeviceReading, 0, importRows)
	flush := func() error {
		slices.SortStableFunc(batch, func(a, b client.DeviceReading) int {
			return bytes.Compare(a.DeviceID[:], b.DeviceID[:])
		})
		err := s.transaction(ctx, func(tx *sql.Tx) error { return write(ctx, tx, batch) })
		batch = batch[:0]
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		batch = append(batch, row)
		if len(batch) == importRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// SetLists replaces the lists and the state in one transaction.
func (s *Store) SetLists(ctx context.Context, lists localcopy.Lists, state localcopy.State) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM devices; DELETE FROM assignments`); err != nil {
			return err //nolint:wrapcheck // The transaction wraps it.
		}
		for i := range lists.Devices {
			d := &lists.Devices[i]
			metadata, err := json.Marshal(localcopy.Tags(*d))
			if err != nil {
				return err //nolint:wrapcheck // The transaction wraps it.
			}
			_, err = tx.ExecContext(ctx, insertDevice,
				d.DeviceID.String(), d.HardwareID, d.DisplayName, string(metadata), optionalTime(d.LastSeenAt))
			if err != nil {
				return err //nolint:wrapcheck // The transaction wraps it.
			}
		}
		for i := range lists.Assignments {
			a := &lists.Assignments[i]
			started, ended := wholeSecond(a.StartedAt), a.EndedAt
			if ended != nil {
				ended = new(wholeSecond(*ended))
			}
			_, err := tx.ExecContext(ctx, insertAssignment, a.AssignmentID.String(), string(a.Type), a.Label,
				string(a.HomeOrTravel), formatTime(started), optionalTime(ended), a.ExternalRef, a.DeviceID.String(), a.DisplayName)
			if err != nil {
				return err //nolint:wrapcheck // The transaction wraps it.
			}
		}
		return writeState(ctx, tx, state)
	})
}

// wholeSecond rounds a time up. As a text, 10:00:00Z is not before 10:00:00.5Z, because a point sorts before a Z. A
// bucket begins at a whole second, so that it is before the rounded time exactly if it is before the time itself.
func wholeSecond(at time.Time) time.Time { return at.Add(time.Second - 1).Truncate(time.Second) }

// transaction calls do in a transaction, which it commits unless do fails.
func (s *Store) transaction(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.path, err)
	}
	if err := do(tx); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", s.path, err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("writing %s: %w", s.path, err)
	}
	return nil
}

func write(ctx context.Context, tx *sql.Tx, rows []client.DeviceReading) error {
	if len(rows) == 0 {
		return nil
	}
	upsert, err := tx.PrepareContext(ctx, upsertReading)
	if err != nil {
		return err //nolint:wrapcheck // The transaction wraps it.
	}
	defer func() { _ = upsert.Close() }()
	for i := range rows {
		r := &rows[i]
		_, err := upsert.ExecContext(ctx, r.DeviceID.String(), formatTime(r.BucketAt), r.CO2PPM, r.TempC, r.HumidityPct,
			r.Lux, r.SPLDB, formatTime(r.IngestedAt))
		if err != nil {
			return err //nolint:wrapcheck // The transaction wraps it.
		}
	}
	return nil
}

// formatTime prints a time as the API does.
func formatTime(at time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05.999999Z")
}

func optionalTime(at *time.Time) *string {
	if at == nil {
		return nil
	}
	return new(formatTime(*at))
}
