package doctor

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/test/natstest"
)

// A stream that could not write to its disk still responds, but stores nothing.
func TestDiagnoseWriteError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	diagnose := func() Finding {
		d := &doctor{options: Options{NATSMonitoring: "http://" + s.MonitorAddr().String()}}
		d.checkMonitoring(t.Context())
		require.Len(t, d.findings, 2)
		return d.findings[1]
	}
	require.Equal(t, OK, diagnose().Status)

	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", nil)
	require.NoError(t, err)
	natstest.FailWrites(t, dir)
	require.NoError(t, nc.Publish("s", nil)) // It would have no answer.
	require.Eventually(t, func() bool { return diagnose().Status == Wrong }, time.Minute, 10*time.Millisecond)
	require.Contains(t, diagnose().Message, "no space left on device")
}
