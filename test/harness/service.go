package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
)

// Service is the service under test as its users and operators reach it.
type Service struct {
	*Env
	// Program is the path of roomsensor, for operator commands.
	Program string
	// DatabaseURL returns the current URL of the database. It bypasses proxies and may change when the server restarts.
	DatabaseURL func() string
	// QueueURL is the URL of NATS, without proxies. JS is a connection to it.
	QueueURL string
	JS       jetstream.JetStream
	// Receiver and API are host and port.
	Receiver, API string
	// AckWait overrides the ack_wait of the workers' consumer; 0 leaves it as in production.
	AckWait time.Duration
}

const (
	// queueTimeout bounds one request to NATS.
	queueTimeout = 5 * time.Second
	// reconnectWait is the pause between attempts to reconnect to NATS.
	reconnectWait = 200 * time.Millisecond
	// queryTimeout bounds one connection to the database.
	queryTimeout = 2 * time.Minute
	// queueBackTimeout limits the outage of NATS on a busy machine.
	queueBackTimeout = time.Minute
	// settleTimeout is for all messages in the stream, including those of killed workers, which are redelivered after
	// ack_wait.
	settleTimeout = 10 * time.Minute
)

// Connect connects to NATS as a trusted publisher does: what cannot be sent at once fails at once. The caller closes
// the connection.
func Connect(url string, more ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	options := append([]nats.Option{
		nats.Name("roomsensor trial"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true),
	}, more...)
	conn, err := nats.Connect(url, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(queueTimeout))
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("opening JetStream: %w", err)
	}
	return conn, js, nil
}

// Command runs an operator command and decodes its output into result, unless that is nil.
func (s *Service) Command(ctx context.Context, result any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.Program, args...) //nolint:gosec // The arguments are the trial's.
	cmd.Env = []string{"DATABASE_URL=" + s.DatabaseURL(), "NATS_URL=" + s.QueueURL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("roomsensor %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(stdout, result); err != nil {
		return fmt.Errorf("reading the output of roomsensor %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Query calls f with a new connection to the database.
func (s *Service) Query(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DatabaseURL())
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return f(ctx, conn)
}

// Consumer returns the state of the workers' consumer.
func (s *Service) Consumer(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	consumer, err := s.JS.Consumer(ctx, queue.StreamName, queue.ConsumerName)
	if err != nil {
		return nil, fmt.Errorf("reading the consumer: %w", err)
	}
	return consumer.CachedInfo(), nil
}

// ShortenAckWait applies AckWait to the consumer. A process that declares the consumer when it starts resets it.
func (s *Service) ShortenAckWait(ctx context.Context) error {
	if s.AckWait == 0 {
		return nil
	}
	err := Await(ctx, queueBackTimeout, reconnectWait, func(ctx context.Context) error {
		info, err := s.Consumer(ctx)
		if err == nil {
			info.Config.AckWait = s.AckWait
			_, err = s.JS.UpdateConsumer(ctx, queue.StreamName, info.Config)
		}
		return err //nolint:wrapcheck // Wrapped below.
	})
	if err != nil {
		return fmt.Errorf("shortening ack_wait: %w", err)
	}
	return nil
}

// AwaitSettled waits until the workers have acknowledged every message of the stream. It returns the number of
// deliveries.
func (s *Service) AwaitSettled(ctx context.Context) (deliveries int64, err error) {
	const interval, logInterval = 20 * time.Millisecond, 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	logged := time.Now()
	var last error
	err = retry.Until(ctx, interval, func(ctx context.Context) (bool, error) {
		var info *jetstream.ConsumerInfo
		if info, last = s.Consumer(ctx); last != nil {
			return false, nil //nolint:nilerr // NATS may be restarting.
		}
		if now := time.Now(); now.Sub(logged) > logInterval {
			logged = now
			s.Logf("waiting for the workers: %d messages waiting, %d delivered and not acknowledged",
				info.NumPending, info.NumAckPending)
		}
		deliveries = int64(info.Delivered.Consumer) //nolint:gosec // Some thousands.
		return info.NumPending == 0 && info.NumAckPending == 0, nil
	})
	if err != nil {
		return deliveries, fmt.Errorf("waiting for the workers to acknowledge everything: %w", errors.Join(err, last))
	}
	return deliveries, nil
}
