package ops

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Server is the state of the database server, for the command doctor.
type Server struct {
	Version                     string // of PostgreSQL
	Syncs, WritesFullPages      bool   // fsync and full_page_writes
	HasChecksums                bool   // data_checksums
	ChecksumFailures            int64  // of databases with one in the last day
	IsStandby                   bool
	Clock                       time.Time
	Connections, MaxConnections int64 // of the whole server, for roles that are not superusers
	// OldestTransaction is the age of the oldest other transaction that the role may see.
	OldestTransaction time.Duration
	Bytes             int64 // of the database
	SharedBuffers     int64 // in bytes
	PostponedChunks   int   // whose rewrite exceeded its time limit
	Devices           int64 // that have a unit
}

// Server returns the state of the database server. Every migration must be applied.
func (s *Store) Server(ctx context.Context) (Server, error) {
	row, err := s.Queries.ServerGet(ctx, s.Pool)
	if err != nil {
		return Server{}, fmt.Errorf("reading the settings of the server: %w", pg.Translate(err))
	}
	usage, err := s.Queries.DatabaseGetUsage(ctx, s.Pool)
	if err != nil {
		return Server{}, fmt.Errorf("reading the size of the database: %w", pg.Translate(err))
	}
	return Server{
		Version: row.Version, Syncs: row.Syncs, WritesFullPages: row.WritesFullPages,
		HasChecksums: row.HasChecksums, ChecksumFailures: row.ChecksumFailures, IsStandby: row.IsStandby,
		Clock: row.Clock.UTC(), Connections: usage.Connections, MaxConnections: usage.MaxConnections,
		OldestTransaction: time.Duration(row.OldestTransactionSeconds) * time.Second,
		Bytes:             usage.Bytes, SharedBuffers: row.SharedBuffersBytes,
		PostponedChunks: int(row.PostponedChunks), Devices: row.Devices,
	}, nil
}

// Certificate returns the certificate that the server presented, or nil without TLS.
func (s *Store) Certificate(ctx context.Context) (*x509.Certificate, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", pg.Translate(err))
	}
	defer conn.Release()
	secure, ok := conn.Conn().PgConn().Conn().(*tls.Conn)
	if !ok {
		return nil, nil //nolint:nilnil // No certificate is no error.
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}

// Owner is who owns the tables.
type Owner struct {
	Tables, Database string // roles
	MayCreate        bool   // whether the owner of the tables may create more of them
	Repair           string // SQL with which an administrator lets it
}

// Owner returns who owns the tables, or the role of the store before the first migration.
func (s *Store) Owner(ctx context.Context) (Owner, error) {
	row, err := s.Queries.OwnerGet(ctx, s.Pool)
	if err != nil {
		return Owner{}, fmt.Errorf("reading the owner of the tables: %w", pg.Translate(err))
	}
	return Owner{Tables: row.TableOwner, Database: row.DatabaseOwner, MayCreate: row.MayCreate, Repair: row.Repair}, nil
}

// Archive is the state of the archive of the write-ahead log.
type Archive struct {
	On, Fails bool
	At        time.Time // when a segment was archived last; 1970 for never
	Segment   string    // that could not be archived last
	Failures  int64
}

// Archive returns the state of the archive of the write-ahead log.
func (s *Store) Archive(ctx context.Context) (Archive, error) {
	return s.archive(ctx, s.Pool)
}

func (s *Store) archive(ctx context.Context, conn db.DBTX) (Archive, error) {
	row, err := s.Queries.ArchiverGet(ctx, conn)
	if err != nil {
		return Archive{}, fmt.Errorf("reading the state of the archive: %w", pg.Translate(err))
	}
	return Archive{row.Archives, row.Fails, row.ArchivedAt.UTC(), row.Segment, row.Failures}, nil
}

// Restored is up to when a database has what happened. A time is 1970 if there is nothing.
type Restored struct {
	StoredAt  time.Time // newest arrival of an upload that is stored
	ChangedAt time.Time // newest change of people and commands
	Sessions  int64     // of people, with all links and the mails that wait
}

// Restored returns up to when the database has what happened.
func (s *Store) Restored(ctx context.Context) (Restored, error) {
	row, err := s.Queries.RestoredGet(ctx, s.Pool)
	if err != nil {
		return Restored{}, fmt.Errorf("reading the newest changes: %w", pg.Translate(err))
	}
	return Restored{row.StoredAt.UTC(), row.ChangedAt.UTC(), row.Sessions}, nil
}

// TableSize is how large a table is.
type TableSize struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // on disk, indexes and chunks included
	Rows  int64  `json:"rows"`  // about
}

// TableSizes lists the tables, the largest first.
func (s *Store) TableSizes(ctx context.Context) ([]TableSize, error) {
	rows, err := s.Queries.TableSizeList(ctx, s.Pool)
	if err != nil {
		return nil, fmt.Errorf("reading the sizes of the tables: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.TableSizeListRow) TableSize {
		return TableSize{row.Name, row.Bytes, row.RowCount}
	}), nil
}

// SeesSessions reports whether the role of the store sees what the sessions of other roles do.
func (s *Store) SeesSessions(ctx context.Context) (bool, error) {
	sees, err := s.Queries.SessionsSeen(ctx, s.Pool)
	if err != nil {
		return false, fmt.Errorf("reading the rights of the role: %w", pg.Translate(err))
	}
	return sees, nil
}

// writeLockTimeout limits the wait of TryWrite for a lock, as the API does.
const writeLockTimeout = "2s"

var errRollBack = errors.New("rolled back")

// TryWrite writes as processes do, in a transaction that it rolls back. Its error is that of the server.
func (s *Store) TryWrite(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		for _, try := range []func() error{
			func() error { return s.Set(ctx, tx, "lock_timeout", writeLockTimeout) },
			func() error { return s.Queries.TableLock(ctx, tx) },
			func() error { return s.Queries.RowsTry(ctx, tx) },
		} {
			if err := try(); err != nil {
				return err
			}
		}
		return errRollBack
	})
	if errors.Is(err, errRollBack) {
		return nil
	}
	return err //nolint:wrapcheck // The finding says what was done.
}

// LockHolder is a session that locks a whole table.
type LockHolder struct {
	PID   int
	Table string
}

// LockHolders lists the sessions that lock whole tables.
func (s *Store) LockHolders(ctx context.Context) ([]LockHolder, error) {
	rows, err := s.Queries.LockHolderList(ctx, s.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing locks: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.LockHolderListRow) LockHolder {
		return LockHolder{int(row.Pid), row.TableName}
	}), nil
}

// FullChunk is the newest chunk of readings that is full.
type FullChunk struct {
	Length            time.Duration
	Bytes, IndexBytes int64 // Bytes includes the indexes
}

// DailyIndexBytes returns by how much the indexes of the newest chunk grow in a day: as those of the newest full chunk
// did, or as they will if every device reports, whichever is more.
func (s *Server) DailyIndexBytes(full FullChunk) int64 {
	const hours = 24
	expected := roomsensor.DailyIndexBytes(s.Devices)
	if full.Length == 0 {
		return expected
	}
	return max(expected, int64(float64(full.IndexBytes)*hours/full.Length.Hours()))
}

// FullChunk returns the newest chunk of readings that is full. It is zero if there is none.
func (s *Store) FullChunk(ctx context.Context) (FullChunk, error) {
	row, err := s.Queries.ChunkGetNewest(ctx, s.Pool)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return FullChunk{}, nil
	case err != nil:
		return FullChunk{}, fmt.Errorf("reading the size of a chunk: %w", pg.Translate(err))
	}
	return FullChunk{time.Duration(row.Seconds) * time.Second, row.Bytes, row.IndexBytes}, nil
}

// FailedJob is a job of TimescaleDB that failed, or did not run when it should have.
type FailedJob struct {
	ID      int
	Name    string
	LastRun string // Success, Failed or never ran
}

// FailedJobs lists the jobs whose last run failed, or which should have run an hour ago.
func (s *Store) FailedJobs(ctx context.Context) ([]FailedJob, error) {
	rows, err := s.Queries.JobListFailed(ctx, s.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.JobListFailedRow) FailedJob {
		return FailedJob{ID: int(row.JobID), Name: row.Name, LastRun: row.LastRun}
	}), nil
}

// Blocker is a session that others wait for.
type Blocker struct {
	PID               int
	Role, Application string // empty if the role of the store may not see them
	State             string // such as idle in transaction, or unknown
	Waiting           int64  // sessions that wait for it
	// Open is the age of its transaction, or the longest wait for it, whichever is longer.
	Open time.Duration
}

// Blockers lists the sessions that others wait for, and whose Open is longer than a duration, but not those that wait
// themselves.
func (s *Store) Blockers(ctx context.Context, longer time.Duration) ([]Blocker, error) {
	rows, err := s.Queries.BlockerList(ctx, s.Pool, longer.Seconds())
	if err != nil {
		return nil, fmt.Errorf("listing the sessions that block others: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.BlockerListRow) Blocker {
		return Blocker{
			PID: int(row.Pid), Role: row.RoleName, Application: row.Application, State: row.State,
			Waiting: row.Waiting, Open: time.Duration(row.Seconds) * time.Second,
		}
	}), nil
}
