// Package trial is what all trials of the ingest side have in common, whatever the service runs on and whatever happens
// to it: it makes a fleet as operators do, sends its uploads as devices do, waits until the workers have settled them,
// and holds what the tables then hold against the ledger.
package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Service is the service under trial, as those see it who use and operate it.
type Service struct {
	// Program is the path of roomsensor, for the commands of operators.
	Program string
	// DatabaseURL leads straight to the database; it may be another one after each restart.
	DatabaseURL func() string
	// QueueURL leads straight to the queue, and JS is a connection to it.
	QueueURL string
	JS       jetstream.JetStream
	// Receiver and API are the addresses that clients reach.
	Receiver, API string
	// AckWait is how long the queue is to wait for a worker, where that is to be shorter than in production.
	AckWait time.Duration
	// Say tells of what happens. Unexpected notes what should not happen whatever the faults, and makes the trial fail.
	Say, Unexpected func(format string, args ...any)
}

// answerTimeout bounds one question to the queue.
const answerTimeout = 5 * time.Second

// reconnectWait is what a connection to the queue waits before it tries again.
const reconnectWait = 200 * time.Millisecond

// Connect opens a connection to the queue as a device on trusted ground has one: what cannot be sent at once fails at
// once. Close what it returns.
func Connect(url string, more ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	options := append([]nats.Option{
		nats.Name("roomsensor trial"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true),
	}, more...)
	conn, err := nats.Connect(url, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the queue: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(answerTimeout))
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("opening JetStream: %w", err)
	}
	return conn, js, nil
}

// Command runs an operator's command and reads what it prints into printed, unless that is nil.
func (s *Service) Command(ctx context.Context, printed any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.Program, args...) //nolint:gosec // The arguments are the trial's.
	cmd.Env = []string{"DATABASE_URL=" + s.DatabaseURL(), "NATS_URL=" + s.QueueURL}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("roomsensor %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	if printed == nil {
		return nil
	}
	if err := json.Unmarshal(said, printed); err != nil {
		return fmt.Errorf("reading what roomsensor %s prints: %w", strings.Join(args, " "), err)
	}
	return nil
}

// questionTimeout bounds what a trial asks the database at a time.
const questionTimeout = 2 * time.Minute

// Ask opens a connection of its own to the database.
func (s *Service) Ask(ctx context.Context, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return question(ctx, conn)
}

// Pause waits, or returns the reason why ctx ended.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}
