package queue_test

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/tlstest"
)

// startProduction starts a server with the configuration of deploy/nats.production.conf, and returns its port. The
// password of each user is its name.
func startProduction(t *testing.T, certificates tlstest.Certificates) (port string) {
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
	s.Start()
	t.Cleanup(s.Shutdown)
	require.True(t, s.ReadyForConnections(patience))
	return strconv.Itoa(s.Addr().(*net.TCPAddr).Port)
}

// TestProductionUsers checks that each user of the production configuration can do what its processes do, and nothing
// that would lose uploads.
func TestProductionUsers(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	port := startProduction(t, certificates)
	as := func(user string) (*queue.Queue, jetstream.JetStream) {
		nc, err := queue.Connect("tls://"+user+":"+user+"@localhost:"+port, t.Name(), zerolog.Nop(), nats.RootCAs(certificates.CA))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
		return open(t, nc, small)
	}
	receiver, receiverJS := as("receiver")
	worker, workerJS := as("worker")
	operator, operatorJS := as("operator")

	require.NoError(t, worker.Declare(t.Context()))
	require.NoError(t, receiver.Check(t.Context()))
	for range 2 {
		_, err := receiver.Publish(t.Context(), messages("a", "b"))
		require.NoError(t, err)
	}
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
	purged, err := worker.Purge(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, purged)
	_, err = operator.Publish(t.Context(), messages("c"))
	require.NoError(t, err)
	require.NoError(t, operator.Replay(t.Context(), nil))

	for name, js := range map[string]jetstream.JetStream{"receiver": receiverJS, "worker": workerJS} {
		short, err := jetstream.New(js.Conn(), jetstream.WithDefaultTimeout(200*time.Millisecond)) // A refusal has no response.
		require.NoError(t, err)
		require.Error(t, short.DeleteStream(t.Context(), queue.StreamName), name)
		require.Error(t, short.DeleteConsumer(t.Context(), queue.StreamName, queue.ConsumerName), name)
		_, err = short.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER"})
		require.Error(t, err, name)
		_, err = js.Conn().SubscribeSync("uploads.*")
		require.NoError(t, err, "the server refuses it later")
	}
	stream, err := receiverJS.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	require.Error(t, stream.Purge(t.Context()), "a receiver cannot purge")
	_, err = receiverJS.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	_, err = worker.Publish(t.Context(), messages("from a worker"))
	require.Error(t, err, "a worker cannot publish")
	info, err := operatorJS.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	require.EqualValues(t, 1, info.CachedInfo().State.Msgs)
}

// TestConnectVerifiesTheServer checks that a client refuses a server whose CA it does not trust, or whose certificate
// is for another name, and says so.
func TestConnectVerifiesTheServer(t *testing.T) {
	t.Parallel()
	certificates := tlstest.New(t, "localhost")
	port := startProduction(t, certificates)
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
