package queue_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/tlstest"
)

// violations collects what a server logs about refused subjects.
type violations struct {
	server.Logger
	list atomic.Pointer[[]string]
}

// Errorf is called by one connection at a time in these tests.
func (v *violations) Errorf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, "Violation") {
		list := append(slices.Clone(v.all()), text)
		v.list.Store(&list)
	}
}

func (*violations) Noticef(string, ...any) {}
func (*violations) Warnf(string, ...any)   {}
func (*violations) Fatalf(string, ...any)  {}
func (*violations) Debugf(string, ...any)  {}
func (*violations) Tracef(string, ...any)  {}

func (v *violations) all() []string {
	if list := v.list.Load(); list != nil {
		return *list
	}
	return nil
}

// startProduction starts a server with the configuration of deploy/nats.production.conf, and returns its port and what
// it refused. The password of each user is its name.
func startProduction(t *testing.T, certificates tlstest.Certificates) (port string, refused *violations) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"nats.conf", "nats.production.conf"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", name))
		require.NoError(t, err)
		local := strings.NewReplacer("/etc/nats/tls/nats.pem", certificates.Server, "/etc/nats/tls/nats.key", certificates.Key,
			"$NATS_OPERATOR_PASSWORD", "operator", "$NATS_WORKER_PASSWORD", "worker", "$NATS_RECEIVER_PASSWORD", "receiver").
			Replace(string(text))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(local), 0o600)) //nolint:gosec // Both names are constants.
	}
	options, err := server.ProcessConfigFile(filepath.Join(dir, "nats.production.conf"))
	require.NoError(t, err)
	require.True(t, options.SyncAlways)
	options.Host, options.Port, options.HTTPPort, options.StoreDir, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, 0, dir, true
	s, err := server.NewServer(options)
	require.NoError(t, err)
	refused = &violations{}
	s.SetLogger(refused, false, false)
	s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(patience))
	return strconv.Itoa(s.Addr().(*net.TCPAddr).Port), refused
}

// TestProductionUsers checks that each user of the production configuration can do what its processes do, and nothing
// that another one may do, that would lose uploads, or that reads those of all teams.
func TestProductionUsers(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	port, refused := startProduction(t, certificates)
	as := func(user string) (*queue.Queue, *nats.Conn) {
		nc, err := queue.Connect("tls://"+user+":"+user+"@localhost:"+port, t.Name(), zerolog.Nop(), nats.RootCAs(certificates.CA))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
		q, _ := open(t, nc, small)
		return q, nc.Conn
	}
	receiver, receiverConn := as("receiver")
	worker, workerConn := as("worker")
	operator, _ := as("operator")

	require.ErrorIs(t, receiver.Check(t.Context()), queue.ErrNoStream)
	useAsProcesses(t, receiver, worker, operator)
	require.Empty(t, refused.all(), "processes and commands ask for nothing that they may not do")

	for _, user := range []struct {
		nc                 *nats.Conn
		publish, subscribe []string
	}{
		{
			receiverConn,
			[]string{
				"$JS.API.STREAM.CREATE.UPLOADS", "$JS.API.STREAM.MSG.GET.UPLOADS", "$JS.API.STREAM.PURGE.UPLOADS",
				"$JS.API.CONSUMER.CREATE.UPLOADS.spy", "$JS.API.CONSUMER.MSG.NEXT.UPLOADS.ingest", "$JS.ACK.UPLOADS.ingest.1.1.1.1.1",
				"_INBOX.worker.x", "uploads.-.x",
			},
			[]string{"_INBOX.worker.>", "_INBOX.operator.>"},
		},
		{workerConn, []string{"uploads.-.x", "_INBOX.receiver.x"}, []string{"_INBOX.receiver.>", "_INBOX.operator.>"}},
	} {
		for _, subject := range append(user.publish,
			"$JS.API.STREAM.UPDATE.UPLOADS", "$JS.API.STREAM.DELETE.UPLOADS", "$JS.API.STREAM.MSG.DELETE.UPLOADS",
			"$JS.API.STREAM.CREATE.OTHER", "$JS.API.CONSUMER.DELETE.UPLOADS.ingest") {
			require.NoError(t, user.nc.Publish(subject, nil))
			requireRefused(t, user.nc, subject)
		}
		for _, subject := range append(user.subscribe, "_INBOX.>", "uploads.>", "$JS.>", ">") {
			_, err := user.nc.SubscribeSync(subject)
			require.NoError(t, err, "the server refuses it later")
			requireRefused(t, user.nc, subject)
		}
	}
	require.NotEmpty(t, refused.all())
}

// requireRefused checks that the server refused the last request of a connection for a subject.
func requireRefused(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	require.NoError(t, nc.Flush())
	require.ErrorIs(t, nc.LastError(), nats.ErrPermissionViolation)
	require.ErrorContains(t, nc.LastError(), `"`+subject+`"`)
}

// useAsProcesses does everything that processes and commands do.
func useAsProcesses(t *testing.T, receiver, worker, operator *queue.Queue) {
	t.Helper()
	require.NoError(t, worker.DeclareMissing(t.Context()))
	require.NoError(t, operator.Declare(t.Context()))
	require.NoError(t, receiver.Check(t.Context()))
	for range 2 {
		list := messages("a", "b")
		list[0].Team, list[1].Team = &uuid.UUID{1}, &uuid.UUID{1} // They have a backlog.
		_, err := receiver.Publish(t.Context(), list)
		require.NoError(t, err)
	}
	require.NoError(t, receiver.FreeBacklogs(t.Context()))
	consumer, err := worker.Consume(t.Context())
	require.NoError(t, err)
	defer consumer.Stop()
	lane, err := worker.ConsumePriorityLane(t.Context(), time.Now().Add(-time.Hour))
	require.NoError(t, err)
	defer lane.Stop()
	for range 4 {
		d, err := consumer.Next(t.Context())
		require.NoError(t, err)
		d.Extend()
		require.NoError(t, d.Ack())
		_, err = lane.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, worker.Flush(t.Context()))
	require.Eventually(t, func() bool {
		state, err := worker.State(t.Context())
		return err == nil && state.Unacknowledged == 0
	}, patience, time.Millisecond)
	purged, err := worker.Purge(t.Context(), 0, nil)
	require.NoError(t, err)
	require.EqualValues(t, 4, purged.Messages)
	_, err = operator.Publish(t.Context(), messages("c"))
	require.NoError(t, err)
	require.NoError(t, operator.Replay(t.Context(), nil))
}

// TestConnectVerifiesTheServer checks that a client refuses a server whose CA it does not trust, or whose certificate
// is for another name, and says so.
func TestConnectVerifiesTheServer(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	port, _ := startProduction(t, certificates)
	for _, test := range []struct{ host, ca, want string }{
		{"localhost", tlstest.New(t, "localhost").CA, "signed by unknown authority"},
		{"127.0.0.1", certificates.CA, "cannot validate certificate for 127.0.0.1"},
	} {
		nc, err := queue.Connect("tls://receiver:receiver@"+test.host+":"+port, t.Name(), zerolog.Nop(),
			nats.RootCAs(test.ca), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		q, _ := open(t, nc, small)
		require.Eventually(t, func() bool {
			err = q.Check(t.Context())
			return strings.Contains(err.Error(), test.want)
		}, patience, time.Millisecond)
		require.ErrorAs(t, err, new(*tls.CertificateVerificationError))
	}
}
