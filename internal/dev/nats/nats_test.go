package nats_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	devnats "roomsensor/internal/dev/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns the JetStream client of a server.
func connect(t *testing.T, s *devnats.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.URL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func TestStartAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := devnats.Start(devnats.Options{StoreDir: dir, MaxStore: 1 << 20})
	require.NoError(t, err)
	js := connect(t, s)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 1 << 19})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", []byte("kept"))
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"t"}, MaxBytes: 1 << 20})
	require.ErrorContains(t, err, "insufficient storage", "MaxStore bounds all streams together")
	s.Shutdown()
	s.Shutdown()

	again, err := devnats.Start(devnats.Options{StoreDir: dir, Port: s.Port})
	require.NoError(t, err)
	defer again.Shutdown()
	require.Equal(t, s.URL, again.URL)
	stream, err := connect(t, again).Stream(t.Context(), "S")
	require.NoError(t, err)
	message, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "kept", string(message.Data))
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	tests := map[string]struct {
		options devnats.Options
		want    string
	}{
		"no directory":             {devnats.Options{}, "no directory is given"},
		"a directory that is none": {devnats.Options{StoreDir: file}, "starting NATS: "},
		"a port that is taken": {
			devnats.Options{StoreDir: t.TempDir(), Port: taken.Addr().(*net.TCPAddr).Port}, "address already in use",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			test.options.Log = zerolog.New(&log).Level(zerolog.WarnLevel)
			_, err := devnats.Start(test.options)
			require.ErrorContains(t, err, test.want)
		})
	}
}
