package natstest_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRestart(t *testing.T) {
	t.Parallel()
	s := natstest.New(t)
	url := s.URL
	back := make(chan struct{}, 1)
	nc, err := nats.Connect(url, nats.ReconnectWait(0), nats.ReconnectHandler(func(*nats.Conn) { back <- struct{}{} }))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", nil)
	require.NoError(t, err)

	s.Shutdown()
	s.Restart(t)
	require.Equal(t, url, s.URL)
	<-back
	ack, err := js.Publish(t.Context(), "s", nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, ack.Sequence)
}
