package queue

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

const (
	// StreamName is the name of the stream.
	StreamName = "UPLOADS"
	// ConsumerName is the name of the durable consumer that all workers share.
	ConsumerName = "ingest"
	// NoTeam stands for the team in the subject of a message from a trusted publisher.
	NoTeam = "-"

	// noUnit stands for the unit in the subject of a message with a team. NATS keeps each subject in memory, some 250
	// bytes, and a client with a credential can make up any number of units.
	noUnit = "-"

	// The subject of a message is uploads.<team>.-, with the id of the team whose credential the upload came with, or
	// uploads.-.<hardware_id>.
	subjectPrefix = "uploads."
	subjects      = subjectPrefix + "*.*"
)

const (
	// DefaultMaxBytes is the default size limit of the stream: about ten days of 10,000 devices.
	DefaultMaxBytes = 8 << 30
	// DefaultKeep is the retention of uploads that are stored in the tables, for a replay of the stream after a restore.
	DefaultKeep = 7 * 24 * time.Hour
)

// AckWait limits the server's wait for an acknowledgement or an extension before it delivers a message to another
// worker. It is three times the longest batch, and the longest that the messages of a crashed worker wait.
const AckWait = 60 * time.Second

const (
	// maxAckPending bounds the messages that all workers together hold, including those that were returned with a delay:
	// four full batches of the smallest uploads. More than four workers share it without starving, because it is far
	// more than what commits within a second.
	maxAckPending = 50_000
	// requestTimeout bounds a few requests to the server: a request to a server that died has no response.
	requestTimeout = 5 * time.Second
	// ackTimeout limits a publisher's wait for the stream, which syncs every message to disk. A busy disk takes a
	// second.
	ackTimeout = 10 * time.Second
	// maxUnacknowledged bounds the messages that a process has published without a confirmation yet. More than a few
	// thousand gain nothing.
	maxUnacknowledged = 4096
)

const (
	connectTimeout = 3 * time.Second
	// pingInterval and maxPings detect a dead connection within 6 seconds: as long as a cluster takes to elect another
	// leader, so that the client does not wait for the one when the other is done.
	pingInterval = 2 * time.Second
	maxPings     = 2

	reconnectWait   = 500 * time.Millisecond
	reconnectJitter = 500 * time.Millisecond
)

// Conn is a connection that knows why the last attempt to connect failed.
type Conn struct {
	*nats.Conn

	addresses string // see Addresses
	failure   atomic.Pointer[error]
}

// Connection is a connection to NATS as a Queue uses it beside JetStream.
type Connection interface {
	Addresses() string // of the servers, see Queue.Addresses
	Failure() error    // of the last attempt to connect; nil if it is not known
	IsConnected() bool
	MaxPayload() int64
	Stats() nats.Statistics
	TLSConnectionState() (tls.ConnectionState, error)
	FlushWithContext(ctx context.Context) error
	RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error)
	batchConnection
}

// batchConnection is a connection as commitBatch uses it.
type batchConnection interface {
	PublishMsg(m *nats.Msg) error
	RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error)
	StatusChanged(statuses ...nats.Status) chan nats.Status
	RemoveStatusListener(listener chan nats.Status)
}

// Addresses implements Connection.
func (c *Conn) Addresses() string { return c.addresses }

// Failure implements Connection.
func (c *Conn) Failure() error {
	if last := c.failure.Load(); last != nil {
		return *last
	}
	return c.LastError() //nolint:wrapcheck // Of the client, as it is.
}

// Connect opens a connection that waits for an unavailable server, at the start and later, and never gives up. A
// message that is published meanwhile fails at once instead of waiting in memory, because nothing is stored before the
// stream confirms it. Connect also retries a refused user or password: the client alone would give up after two
// attempts, although the server's configuration may be corrected. It returns an error only for a malformed address.
// If servers is in a file (config.Secret), each attempt uses the user and the password that the file has then.
func Connect(servers, name string, log zerolog.Logger, more ...nats.Option) (*Conn, error) {
	c := &Conn{}
	text, err := config.Secret(servers).Read()
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the queue: %w", err)
	}
	if text != servers {
		login := &login{source: config.Secret(servers), last: userOf(text)}
		more = append(more, nats.UserInfoHandler(login.user), nats.TokenHandler(login.token))
	}
	options := append([]nats.Option{
		nats.Name(name),
		nats.CustomInboxPrefix(inboxPrefix(text)),
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
				log.Warn().Err(err).Msg("lost queue connection")
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.failure.Store(&err) }),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info().Msg("restored queue connection") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrAuthorization) { // Every attempt would log it; Check reports it as well.
				log.Warn().Err(err).Msg("received queue error")
			}
		}),
	}, more...)
	if text != servers {
		text = withoutUsers(text) // Users in addresses would take precedence.
	}
	if c.Conn, err = nats.Connect(text, options...); err != nil {
		return nil, fmt.Errorf("connecting to the queue: %w", err)
	}
	c.addresses = addressesOf(c.Opts.Servers)
	return c, nil
}

// inboxPrefix returns the prefix of the subjects of responses: _INBOX.<user>, so that the permissions of NATS can keep
// a user from reading the responses to others. Without a user, and with one whose name cannot be a part of a subject,
// it is the default, _INBOX.
func inboxPrefix(servers string) string {
	info := userOf(servers)
	user := info.Username()
	if _, hasPassword := info.Password(); !hasPassword || strings.ContainsAny(user, ".*> \t\r\n") || user == "" {
		return strings.TrimSuffix(nats.InboxPrefix, ".") // A user without a password is a secret token.
	}
	return nats.InboxPrefix + user
}

// userOf returns the user of the first server; nil without one.
func userOf(servers string) *url.Userinfo {
	first, _, _ := strings.Cut(servers, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil {
		return nil
	}
	return u.User
}

// withoutUsers removes the users from the addresses of servers.
func withoutUsers(servers string) string {
	list := strings.Split(servers, ",")
	for i, server := range list {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil {
			u.User = nil
			list[i] = u.String()
		}
	}
	return strings.Join(list, ",")
}

// login reads the user of each attempt to connect from a file. While the file cannot be read, such as in the middle of
// its replacement, the user stays as before. The client calls its methods one at a time.
type login struct {
	source config.Secret
	last   *url.Userinfo
}

func (l *login) read() *url.Userinfo {
	if text, err := l.source.Read(); err == nil {
		l.last = userOf(text)
	}
	return l.last
}

// user returns the name and the password, which are empty for a token.
func (l *login) user() (name, password string) {
	info := l.read()
	if password, ok := info.Password(); ok {
		return info.Username(), password
	}
	return "", ""
}

// token returns the token, which is the name of a user without a password.
func (l *login) token() string {
	info := l.read()
	if _, ok := info.Password(); ok {
		return ""
	}
	return info.Username()
}

// addressesOf names servers by host and port, such as "a:4222 or b:4222", without users and passwords.
func addressesOf(servers []string) string {
	ports := map[string]string{"ws": "80", "wss": "443"}
	var names []string
	for _, server := range servers {
		if u, err := url.Parse(server); err == nil {
			port := cmp.Or(u.Port(), ports[u.Scheme], strconv.Itoa(nats.DefaultPort))
			names = append(names, net.JoinHostPort(u.Hostname(), port))
		}
	}
	return strings.Join(names, " or ")
}

// Config is the part of the stream's configuration that an installation chooses.
type Config struct {
	Replicas int   // of the stream: 1, or 3 on a cluster
	MaxBytes int64 // of the stream; a full stream refuses uploads
}

// Queue is the stream of uploads. It is safe for concurrent use.
type Queue struct {
	nc     Connection
	js     jetstream.JetStream
	config Config
	known  atomic.Pointer[time.Time] // when the stream was created that this process uses; nil before the first
	lost   atomic.Bool               // at the last check, that stream was not there

	maxBytes atomic.Int64  // of the stream; not positive when unbounded
	end      atomic.Uint64 // highest sequence of the stream that this process knows
	cut      atomic.Uint64 // sequences by which the stream became shorter, until Cut
	backlogs backlogs      // of teams

	batcher batcher     // of all messages on their way to the stream
	batches atomic.Bool // the stream accepts atomic batches

	confirmations confirmations // of the messages of this process
}

// New returns the queue of a connection, which need not be established yet.
func New(nc *Conn, config Config) (*Queue, error) {
	js, err := jetstream.New(nc.Conn, jetstream.WithDefaultTimeout(requestTimeout),
		jetstream.WithPublishAsyncMaxPending(maxUnacknowledged), jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	return NewOn(nc, js, config), nil
}

// NewOn is New on a JetStream that the caller opened.
func NewOn(nc Connection, js jetstream.JetStream, config Config) *Queue {
	q := &Queue{
		nc: nc, js: js, config: config,
		backlogs: backlogs{byTeam: map[uuid.UUID]*backlog{}, read: time.Now()},
	}
	q.maxBytes.Store(config.MaxBytes)
	q.batcher = batcher{
		allowed: q.batches.Load, commit: q.commitBatch,
		single: func(m *nats.Msg) (jetstream.PubAckFuture, error) {
			return q.js.PublishMsgAsync(m, jetstream.WithStallWait(ackTimeout))
		},
	}
	return q
}

// Addresses names the configured servers by host and port, such as "a:4222 or b:4222", without users and passwords.
func (q *Queue) Addresses() string { return q.nc.Addresses() }

// Check returns an error unless the stream responds: ErrNoStream if there is none yet, ErrStreamLost if it is not the
// one that this process uses, and ErrSettings if it could lose uploads.
func (q *Queue) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := q.stream(ctx)
	if err == nil {
		err = checkStream(&stream.CachedInfo().Config)
	}
	return q.withCause(err)
}

// MaxBytes returns the size limit of the stream, as of the last Check; not positive when unbounded.
func (q *Queue) MaxBytes() int64 { return q.maxBytes.Load() }

// Cut returns by how many sequences the end of the stream moved back since the last call: a server with damaged files
// drops the messages behind the damage, and gives their sequences to others.
func (q *Queue) Cut() uint64 { return q.cut.Swap(0) }

// observe notes a sequence of the stream.
func (q *Queue) observe(sequence uint64) {
	for {
		known := q.end.Load()
		if sequence <= known || q.end.CompareAndSwap(known, sequence) {
			return
		}
	}
}

// CheckPosition returns ErrSettings if the consumer of the workers skips uploads, or if they get no new uploads because
// its position is beyond the end of the stream: it lost all messages to damaged files, and counts from 1 again. It
// creates a missing consumer.
func (q *Queue) CheckPosition(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, consumer, err := q.inspect(ctx) // The stream last, so that it is not behind.
	if err != nil {
		return q.withCause(err)
	}
	return checkPosition(stream.CachedInfo(), consumer.CachedInfo())
}

// Created returns when the stream was created that this process uses, to the microsecond, or the zero time before the
// first Check.
func (q *Queue) Created() time.Time {
	if known := q.known.Load(); known != nil {
		return *known
	}
	return time.Time{}
}

// Expect makes every other stream than the one that was created at an instant a lost one.
func (q *Queue) Expect(created time.Time) {
	if before := q.known.Swap(&created); before != nil && !before.Equal(created) {
		q.backlogs.forget()
		q.end.Store(0)
	}
}

// ErrNotConnected is the error of a request while there is no connection to NATS.
var ErrNotConnected = errors.New("not connected to NATS")

// notConnectedError is an ErrNotConnected. Its text replaces that of the client, which speaks of a full buffer, or of
// headers that the server does not support. It has no user and no password.
type notConnectedError struct {
	addresses string
	failure   error // why there is no connection; nil if that is unknown
	request   error // as the client reports it
}

func (n *notConnectedError) Error() string {
	text := ErrNotConnected.Error() + " at " + n.addresses
	if n.failure != nil {
		text += ": " + n.failure.Error()
	}
	return text
}

func (n *notConnectedError) Unwrap() []error { return []error{ErrNotConnected, n.failure, n.request} }

// withCause returns a request's error, or an ErrNotConnected if there is no connection. That one also has the cause
// where the client knows it, such as a refused user or a certificate that cannot be verified.
func (q *Queue) withCause(err error) error {
	// The connection may be back already.
	if err == nil || (q.nc.IsConnected() && !errors.Is(err, nats.ErrReconnectBufExceeded)) {
		return err
	}
	return &notConnectedError{q.nc.Addresses(), q.nc.Failure(), err}
}

// Flush waits until the server has received what was sent, such as acknowledgements.
func (q *Queue) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) // The client requires a deadline.
	defer cancel()
	if err := q.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flushing to the queue: %w", err)
	}
	return nil
}

// Fits reports whether the server's max_payload allows the largest upload. It is known once the client is connected.
func (q *Queue) Fits() bool {
	const headers = 1 << 10
	return q.nc.MaxPayload() >= roomsensor.MaxUploadBytes+headers
}
