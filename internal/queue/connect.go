package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

const (
	connectTimeout = 3 * time.Second
	// pingInterval and maxPings notice a connection that lost its other end
	// within 6 seconds, which is as long as a cluster takes to elect another
	// leader: nobody waits for the one when the other is done.
	pingInterval = 2 * time.Second
	maxPings     = 2

	reconnectWait   = 500 * time.Millisecond
	reconnectJitter = 500 * time.Millisecond
)

// Connect opens a connection that waits for a server that is away, at the
// start as later, and never gives up. What is published meanwhile fails at
// once instead of waiting in memory: nothing is stored before the stream says
// so. A server that refuses the user or the password is asked again and again
// too: the client alone would give up after two times, and what helps may be
// done at the server. Its error is of a malformed address.
func Connect(url, name string, log zerolog.Logger, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{
		nats.Name(name),
		nats.Timeout(connectTimeout),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				log.Warn().Err(err).Msg("queue connection lost")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info().Msg("queue connection restored") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrAuthorization) { // Every attempt would say it; Check tells it too.
				log.Warn().Err(err).Msg("queue reported an error")
			}
		}),
	}, more...)
	nc, err := nats.Connect(url, options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the queue: %w", err)
	}
	return nc, nil
}
