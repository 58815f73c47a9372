package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
)

// NoAnswer returns the reason that /readyz reports for a dependency that cannot be reached, with its host and port.
func NoAnswer(addresses string) string { return "does not answer at " + addresses }

// The reasons of a server whose certificate is refused.
const (
	unverifiedDatabase = "presents a certificate that cannot be verified: check that sslrootcert in --database-url " +
		"(DATABASE_URL) is the file of its CA, and that the certificate names the host in the URL"
	unverifiedQueue = "presents a certificate that cannot be verified: check that --nats-ca (NATS_CA) is the file of " +
		"its CA, and that the certificate names the host in --nats-url (NATS_URL)"
)

// refusedUser is the reason of a NATS server that refuses the user of this process.
const refusedUser = "refuses the user or password in --nats-url (NATS_URL)"

// Unverified reports whether a certificate was refused.
func Unverified(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// unavailable returns the error of a database that cannot be used.
func unavailable(cfg config.Database, err error) error {
	reason := pg.Refusal(err)
	switch {
	case Unverified(err):
		reason = unverifiedDatabase
	case reason == "":
		reason = NoAnswer(pg.Addresses(string(cfg.DatabaseURL)))
	}
	return &UnavailableError{Reason: reason, Cause: err}
}

// OpenStore opens the store without waiting for the database. Its only error is a *config.ValueError: a database URL
// that the driver does not accept.
func OpenStore(ctx context.Context, cfg config.Database, role store.Role) (*store.Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.PgBouncer {
		role = role.Pooled()
	}
	s, err := store.Open(ctx, string(cfg.DatabaseURL), role)
	if err != nil {
		return nil, cfg.Malformed()
	}
	return s, nil
}

// LogDatabase logs the database, and warns about a role with more rights than any process needs and about a small lock
// table. config is the configuration of the process.
func (p *Process) LogDatabase(database ops.Database, config zerolog.LogObjectMarshaler) {
	p.Log.Info().Str("version", p.Version).Str("edition", database.Edition).
		Str("timescaledb", database.Version).Object("config", config).Msg("connected to the database")
	if database.IsSuperuser {
		p.Log.Warn().Msg("the database role is a superuser: an attacker who takes over this process can run programs " +
			"on the database server; set DATABASE_ROLES for migrate up, and log in as the role of this process")
	}
	if needed := database.NeededLocks(); needed > 0 {
		p.Log.Warn().Int("chunks", database.Chunks).Int("max_locks_per_transaction", database.MaxLocks).Int("needed", needed).
			Msg("max_locks_per_transaction is too small for the number of chunks: queries may fail with " +
				"\"out of shared memory\"; raise it on the database server to what is needed, and restart the server")
	}
}

// checkSession returns an error if the sessions of the database lack the settings that the service relies on. PgBouncer
// in transaction mode refuses them, or ignores them silently if ignore_startup_parameters tells it to.
func checkSession(ctx context.Context, cfg config.Database, s *store.Store) error {
	database, err := s.Database(ctx)
	switch {
	case err != nil && strings.Contains(err.Error(), "unsupported startup parameter"):
		return &UnavailableError{Reason: "is PgBouncer: set --pgbouncer (PGBOUNCER) to true, or connect directly", Cause: err}
	case err != nil:
		return unavailable(cfg, err)
	case !database.IsBounded:
		return &UnavailableError{Reason: "has no statement_timeout, or synchronous_commit is off, for the role of this " +
			"process: behind PgBouncer, log in as a role that migrate up creates with DATABASE_ROLES"}
	}
	return nil
}

// NeedDatabase makes readiness depend on a database that answers and is migrated to this version.
func (p *Process) NeedDatabase(cfg config.Database, s *store.Store) {
	var migrated atomic.Bool
	watch := p.watchSettings(cfg.Validate)
	p.Health.Need("database", func(ctx context.Context) error {
		watch()
		if !migrated.Load() {
			pending, err := schema.Pending(ctx, string(cfg.DatabaseURL))
			switch {
			case errors.Is(err, schema.ErrBeforeFirstRelease):
				return &UnavailableError{Reason: "is from before the first release: run roomsensor migrate up in a new one"}
			case err != nil:
				return unavailable(cfg, err)
			case pending:
				return &UnavailableError{Reason: "is not migrated to this version: run roomsensor migrate up"}
			}
			if err := checkSession(ctx, cfg, s); err != nil {
				return err
			}
			migrated.Store(true)
		}
		if err := s.Ping(ctx); err != nil {
			return unavailable(cfg, err)
		}
		return nil
	})
}

// watchSettings returns a function that logs a change of whether the files of settings can be used. While they cannot,
// connections are made with what the files had before.
func (p *Process) watchSettings(validate func() error) func() {
	last := ""
	return func() {
		err, text := validate(), ""
		if err != nil {
			text = err.Error()
		}
		switch {
		case text == last:
		case err != nil:
			p.Log.Warn().Err(err).Msg("could not read a setting again, using the last value")
		default:
			p.Log.Info().Msg("read the settings again")
		}
		last = text
	}
}

// ConnectQueue connects to NATS in the background, without waiting for it. name is the client name that NATS shows. Its
// only error is a *config.ValueError: a URL that the client does not accept, or invalid stream settings.
func ConnectQueue(
	cfg config.Queue, stream config.Stream, name string, log zerolog.Logger,
) (*queue.Queue, *queue.Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	if err := stream.Validate(); err != nil {
		return nil, nil, err
	}
	var options []nats.Option
	if cfg.NATSCA != "" {
		options = append(options, nats.RootCAs(cfg.NATSCA))
	}
	conn, err := queue.Connect(string(cfg.NATSURL), name, log, options...)
	if err != nil {
		return nil, nil, cfg.Malformed()
	}
	q, err := queue.New(conn, queue.Config{Replicas: stream.StreamReplicas, MaxBytes: int64(stream.StreamMaxBytes)})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return q, conn, nil
}

// NeedQueue makes readiness depend on the stream of uploads: the one that was there first. It creates none.
func (p *Process) NeedQueue(cfg config.Queue, q *queue.Queue) { p.needQueue(cfg, q, q.Check) }

// NeedRecordedQueue makes readiness depend on the stream of uploads that the database records, and on its consumer. It
// records the first stream.
func (p *Process) NeedRecordedQueue(cfg config.Queue, q *queue.Queue, s *store.Store) {
	p.needQueue(cfg, q, func(ctx context.Context) error { return checkRecorded(ctx, q, s) })
}

// checkRecorded asks the database first, because it must not create a stream if there was one. While the database is
// unavailable, the process is not ready anyway, and the last answer counts.
func checkRecorded(ctx context.Context, q *queue.Queue, s *store.Store) error {
	bounded, cancel := context.WithTimeout(ctx, recordTimeout) // The rest of the time of the probe is for NATS.
	defer cancel()
	recorded, unread := s.StreamCreated(bounded, queue.StreamName)
	if unread != nil && q.Created().IsZero() {
		return errNotRecorded
	}
	if !recorded.IsZero() {
		q.Expect(recorded)
	}
	if err := q.DeclareMissingStream(ctx); err != nil {
		return err
	}
	if unread == nil && recorded.IsZero() { // The first start.
		if err := s.RecordStream(ctx, queue.StreamName, q.Created()); err != nil {
			return errNotRecorded
		}
	}
	return q.CheckPosition(ctx)
}

var errNotRecorded = &UnavailableError{
	Reason: "was not checked yet: the database, which records its stream, is unavailable or not migrated",
}

// recordTimeout bounds the query for the recorded stream.
const recordTimeout = time.Second

// noStream is the reason of a receiver before the first start of a worker.
const noStream = "has no stream of uploads yet: start a worker, which creates it"

// lostStream is the reason of a process without its stream.
const lostStream = "lost its stream of uploads: find it (disk, account and NATS_URL of NATS); if it is gone, run " +
	"roomsensor stream confirm and restart receivers and mqtt"

// unconfirmed is the reason of a process whose uploads the stream does not store.
const unconfirmed = "responds, but confirms no uploads: see the log of NATS and the free space of its disk; after a " +
	"write error, restart NATS"

func (p *Process) needQueue(cfg config.Queue, q *queue.Queue, check Probe) {
	losses := promauto.With(p.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "roomsensor_queue_stream_losses_total",
		Help: "Times that the stream of uploads was missing, was another one, or had lost its newest messages.",
	})
	lost, watch := false, p.watchSettings(cfg.Validate)
	p.Health.Need("queue", func(ctx context.Context) error {
		watch()
		err := check(ctx)
		if is := errors.Is(err, queue.ErrStreamLost); is != lost && (is || err == nil) {
			if lost = is; lost {
				losses.Inc()
				p.Log.Error().Err(err).Time("created", q.Created()).Msg("lost the stream of uploads")
			}
		}
		if cut := q.Cut(); cut > 0 {
			losses.Inc()
			p.Log.Error().Uint64("messages", cut).Msg("the stream of uploads lost its newest messages")
		}
		switch {
		case errors.Is(err, errNotRecorded):
			return err
		case errors.Is(err, queue.ErrNoStream):
			return &UnavailableError{Reason: noStream, Cause: err}
		case errors.Is(err, queue.ErrStreamLost):
			return &UnavailableError{Reason: lostStream, Cause: err}
		case errors.Is(err, queue.ErrSettings):
			return &UnavailableError{Reason: "has " + err.Error()}
		case errors.Is(err, nats.ErrAuthorization):
			return &UnavailableError{Reason: refusedUser, Cause: err}
		case Unverified(err):
			return &UnavailableError{Reason: unverifiedQueue, Cause: err}
		case err != nil:
			return &UnavailableError{Reason: NoAnswer(q.Addresses()), Cause: err}
		case q.Unconfirmed():
			return &UnavailableError{Reason: unconfirmed}
		case !q.Fits():
			return &UnavailableError{Reason: "takes too small messages: set max_payload of NATS to 1MB or more"}
		}
		return nil
	})
}

// RefusedError is why an operator's command was not carried out, in full sentences that say what to do.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// ErrInterrupted is returned when SIGINT or SIGTERM ends an operator's command before its result is known.
const ErrInterrupted RefusedError = "Interrupted. The operation may or may not have taken effect."

// Refusef returns a RefusedError: one or more full sentences for an operator that say what to do.
func Refusef(format string, args ...any) error {
	return RefusedError(fmt.Sprintf(format, args...))
}

// Interrupted returns ErrInterrupted if ctx was canceled, else err.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// declareTimeout limits the wait of an operator's command for NATS.
const declareTimeout = 10 * time.Second

// DeclareStream creates the stream of uploads if it does not exist, and changes no existing one. Its errors are for
// operators.
func DeclareStream(ctx context.Context, q *queue.Queue) error {
	waiting, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	err := ExplainQueue(ctx, q.DeclareMissing(waiting))
	if err == nil && !q.Fits() {
		return Refusef("The maximum message size of NATS is too small. Set its max_payload to 1MB or more.")
	}
	return err
}

// ExplainQueue returns the error of a request to NATS that an operator sees: a sentence that says what to do, if the
// cause is known.
func ExplainQueue(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ErrInterrupted
	case Unverified(err):
		return Refusef("NATS %s: %v", unverifiedQueue, err)
	case errors.Is(err, nats.ErrAuthorization):
		return Refusef("NATS %s: %v", refusedUser, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, queue.ErrNotConnected):
		return Refusef("NATS does not answer. Check that it runs with JetStream "+
			"and that --nats-url (NATS_URL) is right: %v", err)
	}
	return err
}

// A machine that starts all of the service at once may be too busy to answer the first attempts.
const (
	startAttempts = 5
	startInterval = time.Second
)

// Patiently calls do up to 5 times, 1 s apart, until it succeeds. It returns the last error of do.
func Patiently(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt == startAttempts || retry.Sleep(ctx, startInterval) != nil {
			return err
		}
	}
}
