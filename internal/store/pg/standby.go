package pg

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// A read runs on a standby if its context has a position of the primary (roomsensor.WithPosition). The API puts it
// there for each request, from the verdict of the rate limit: the statement that counts the request returns the
// position too (queries/rate_window.sql), because a statement of its own would cost each request a round trip, and an
// earlier position would be older than the request. The standby serves the read once it has replayed the log up to that
// position, so that the answer has everything that was committed before the request (decision 43 a). In every other
// case the primary serves it.
//
// A standby has two states. It is left out at first. WatchStandbys uses it as soon as it has replayed a position of the
// primary in time, and leaves it out if it has not. A read that fails on it leaves it out until the next check. The
// states only save time: every read checks that the server is in recovery, that it has the system identifier and the
// timeline of the primary, and how far it has replayed. So a standby that lags, was promoted, or follows another
// primary never serves one.
//
// The check precedes the transaction of the read, because a snapshot could be older than a check in it.

// standbyInterval is how often each standby is checked, and standbyCheckTimeout bounds a check.
const standbyInterval, standbyCheckTimeout = time.Second, 3 * time.Second

// StandbyTimes bound the reads on a standby.
type StandbyTimes struct {
	Connection time.Duration // wait for a connection
	Replay     time.Duration // wait for the standby to replay the log
	Page       time.Duration // of a page, both waits included
	Export     time.Duration // of an export, both waits included
}

// defaultStandbyTimes leave the primary, of the 10 s of a page, enough for its longest statement timeout, and of the
// 55 s of an export as much as it needs.
var defaultStandbyTimes = StandbyTimes{
	Connection: 200 * time.Millisecond, Replay: 200 * time.Millisecond, Page: 2 * time.Second, Export: 20 * time.Second,
}

// standbyPoll is the delay between two questions how far a standby has replayed.
var standbyPoll = retry.Backoff{First: 2 * time.Millisecond, Max: 32 * time.Millisecond}

// Fallback is why the primary served a read.
type Fallback int

// The reasons.
const (
	FallbackLeftOut  Fallback = iota // no standby is used
	FallbackBusy                     // all connections of the standby were in use
	FallbackLag                      // the standby had not replayed enough
	FallbackForeign                  // the server is not a standby of the primary
	FallbackConflict                 // the standby canceled the read
	FallbackTimeout                  // the read took too long on the standby
	FallbackError                    // the connection to the standby failed
	fallbacks
)

// String returns the value of the label reason.
func (f Fallback) String() string {
	return [fallbacks]string{"left_out", "busy", "lag", "not_a_standby", "conflict", "timeout", "error"}[f]
}

var (
	errLag     = errors.New("has not replayed the log of the primary in time")
	errForeign = errors.New("is not a standby of the primary: it accepts writes, receives no log, or has another " +
		"system or timeline")
	errBusy = errors.New("has no free connection")
)

// standby is a server that replays the log of the primary.
type standby struct {
	name                 string // host and port
	pool, exports, watch *pgxpool.Pool
	used                 atomic.Bool

	mu       sync.Mutex
	target   int64 // a position that it is to replay
	targetAt time.Time
	caughtUp time.Time // when the primary was at the last target that it has replayed
}

// standbys are those of a store. The zero value has none.
type standbys struct {
	list      []*standby
	next      atomic.Uint64
	reads     atomic.Int64
	waits     atomic.Int64
	waitTime  atomic.Int64
	fallbacks [fallbacks]atomic.Int64
}

// ReadFrom lets reads run on the standbys that a URL names, each host as a server of its own. Call it before any other
// method. The standbys are used while WatchStandbys runs.
func (s *DB) ReadFrom(ctx context.Context, databaseURL string) error {
	servers, err := hostServers(databaseURL)
	if err != nil {
		return err
	}
	for _, on := range servers {
		b := &standby{name: hostOf(on.config)}
		for _, p := range []struct {
			pool **pgxpool.Pool
			name string
			most int32
		}{
			{&b.pool, " standby", s.role.maxConns},
			{&b.exports, " standby export", s.role.exports},
			{&b.watch, " standby check", 1},
		} {
			role := s.role
			role.name += p.name
			if *p.pool, err = newPool(ctx, on, role, p.most); err != nil {
				b.close()
				return err
			}
		}
		s.standbys.list = append(s.standbys.list, b)
	}
	return nil
}

// HasStandbys reports whether reads may run on standbys.
func (s *DB) HasStandbys() bool { return len(s.standbys.list) > 0 }

func hostOf(config *pgxpool.Config) string {
	return net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port)))
}

// hostConfigs returns a configuration per host of a URL. The driver lists a host twice if TLS is optional.
func hostConfigs(databaseURL string) (configs []*pgxpool.Config, err error) {
	all, err := parse(databaseURL)
	if err != nil {
		return nil, err
	}
	first := all.ConnConfig
	ways := append([]*pgconn.FallbackConfig{{Host: first.Host, Port: first.Port, TLSConfig: first.TLSConfig}},
		first.Fallbacks...)
	for _, way := range ways {
		i := slices.IndexFunc(configs, func(c *pgxpool.Config) bool {
			return c.ConnConfig.Host == way.Host && c.ConnConfig.Port == way.Port
		})
		if i >= 0 {
			configs[i].ConnConfig.Fallbacks = append(configs[i].ConnConfig.Fallbacks, way)
			continue
		}
		config := all.Copy()
		config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.TLSConfig = way.Host, way.Port, way.TLSConfig
		config.ConnConfig.Fallbacks = nil
		configs = append(configs, config)
	}
	return configs, nil
}

// hostServers returns a server per host of a URL.
func hostServers(databaseURL string) ([]*server, error) {
	configs, err := hostConfigs(databaseURL)
	if err != nil {
		return nil, err
	}
	servers := make([]*server, len(configs))
	for i, config := range configs {
		servers[i], err = readServer(func() (*pgxpool.Config, error) {
			now, err := hostConfigs(databaseURL)
			of := slices.IndexFunc(now, func(c *pgxpool.Config) bool { return hostOf(c) == hostOf(config) })
			if err == nil && of < 0 {
				err = errHostGone
			}
			if err != nil {
				return nil, err
			}
			return now[of], nil
		})
		if err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// errHostGone means that a URL in a file lacks a host that it had when the process started.
var errHostGone = errors.New("the host is no longer in the URL of the standbys: restart the process")

// close closes the pools that were created.
func (b *standby) close() {
	for _, pool := range []*pgxpool.Pool{b.pool, b.exports, b.watch} {
		if pool != nil {
			pool.Close()
		}
	}
}

// standbyUse is what a read needs from a standby.
type standbyUse struct {
	pool func(*standby) *pgxpool.Pool
	most func(StandbyTimes) time.Duration
}

var (
	forPages = standbyUse{
		func(b *standby) *pgxpool.Pool { return b.pool }, func(t StandbyTimes) time.Duration { return t.Page },
	}
	// ForExports is the use of a standby by exports.
	ForExports = standbyUse{
		func(b *standby) *pgxpool.Pool { return b.exports }, func(t StandbyTimes) time.Duration { return t.Export },
	}
)

// OnStandby calls run with a connection of a standby. served is false if the primary has to serve the read, after run
// failed or without a call of it.
func (s *DB) OnStandby(
	ctx context.Context, use standbyUse, run func(context.Context, *pgxpool.Conn) error,
) (served bool, err error) {
	if !s.HasStandbys() {
		return false, nil
	}
	position := roomsensor.PositionOf(ctx)
	b := s.standbys.choose()
	if b == nil || position == (roomsensor.Position{}) {
		s.standbys.fallbacks[FallbackLeftOut].Add(1)
		return false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, use.most(s.StandbyTimes))
	defer cancel()
	conn, err := s.acquireStandby(bounded, use.pool(b), position)
	if err == nil {
		err = func() error {
			defer conn.Release() // Also after a panic, which a request recovers.
			return run(bounded, conn)
		}()
	}
	switch {
	case err == nil, isAnswer(err):
		s.standbys.reads.Add(1)
		return true, err
	case ctx.Err() != nil:
		return true, err
	}
	reason := fallbackOf(err)
	s.standbys.fallbacks[reason].Add(1)
	if reason == FallbackLag || reason == FallbackForeign || reason == FallbackError {
		b.used.Store(false)
	}
	return false, nil
}

// choose returns a standby that is used, each in turn, or nil.
func (l *standbys) choose() *standby {
	first := l.next.Add(1)
	for i := range uint64(len(l.list)) {
		if b := l.list[(first+i)%uint64(len(l.list))]; b.used.Load() {
			return b
		}
	}
	return nil
}

// acquireStandby returns a connection of a standby that has replayed the log up to a position.
func (s *DB) acquireStandby(
	ctx context.Context, pool *pgxpool.Pool, position roomsensor.Position,
) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, s.StandbyTimes.Connection)
	conn, err := pool.Acquire(waiting)
	cancel()
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, errBusy
		}
		return nil, err //nolint:wrapcheck // Only its kind matters.
	}
	if _, err := s.awaitReplay(ctx, conn, position); err != nil {
		conn.Release()
		return nil, err
	}
	return conn, nil
}

// awaitReplay waits until a standby has replayed the log up to a position, and returns how far it has. Its error is
// errForeign for a server that is not a standby of the primary, and errLag if the standby is too late.
func (s *DB) awaitReplay(
	ctx context.Context, conn db.DBTX, position roomsensor.Position,
) (replayed int64, err error) {
	began := time.Now()
	for attempt := 0; ; attempt++ {
		row, err := s.Queries.StandbyGet(ctx, conn)
		switch waited := time.Since(began); {
		case err != nil:
			return 0, err
		case !row.InRecovery || row.SystemID != position.System || row.Timeline != position.Timeline:
			return 0, errForeign
		case row.Replayed >= position.Log:
			if attempt > 0 {
				s.standbys.addWait(waited)
			}
			return row.Replayed, nil
		case waited >= s.StandbyTimes.Replay:
			s.standbys.addWait(waited)
			return row.Replayed, errLag
		}
		if err := standbyPoll.Sleep(ctx, attempt); err != nil {
			return 0, err
		}
	}
}

func (l *standbys) addWait(d time.Duration) {
	l.waits.Add(1)
	l.waitTime.Add(int64(d))
}

// isAnswer reports whether an error is the answer to a request, which the primary would give too.
func isAnswer(err error) bool {
	var tooMany *roomsensor.TooManyRowsError
	var known *roomsensor.Error
	return errors.Is(err, roomsensor.ErrNotFound) || errors.As(err, &tooMany) ||
		errors.As(err, &known) && known.Code != roomsensor.CodeOverloaded
}

// fallbackOf returns the reason for an error of a standby. A standby that removes rows or locks, as the primary did,
// cancels the statements in the way with a code of class 40. A read that a client made too large says nothing about the
// standby either.
func fallbackOf(err error) Fallback {
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, errBusy):
		return FallbackBusy
	case errors.Is(err, errLag):
		return FallbackLag
	case errors.Is(err, errForeign):
		return FallbackForeign
	case errors.Is(err, context.DeadlineExceeded):
		return FallbackTimeout
	case errors.As(err, &refused) && !inClass(refused.Code, "08") && !inClass(refused.Code, "57P"):
		return FallbackConflict
	}
	return FallbackError
}

// Reader runs the statements of a read: a pool of the primary, or a connection of a standby.
type Reader interface {
	db.DBTX
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// ReadAnywhere calls run with a standby that may serve the read, and with the primary if there is none or run failed
// there. A second call must continue after what the first one handed on.
func (s *DB) ReadAnywhere(ctx context.Context, run func(context.Context, Reader) error) error {
	served, err := s.OnStandby(ctx, forPages, func(ctx context.Context, conn *pgxpool.Conn) error {
		return run(ctx, conn)
	})
	if served {
		return err
	}
	return run(ctx, s.Pool)
}

// ReadSnapshot is InSnapshot for a read that a standby may serve, see ReadAnywhere.
func (s *DB) ReadSnapshot(
	ctx context.Context, doing string, run func(context.Context, pgx.Tx) error,
) error {
	return s.ReadAnywhere(ctx, func(ctx context.Context, from Reader) error {
		return s.snapshotOf(ctx, from, doing, func(tx pgx.Tx) error { return run(ctx, tx) })
	})
}
