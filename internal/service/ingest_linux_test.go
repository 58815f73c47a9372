package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A receiver whose stream responds, but confirms nothing, as after a full disk, is not ready until NATS is restarted.
func TestReceiverWithoutConfirmations(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	cfg := e.config()
	cfg.NoWorker = true
	e.createStream()
	r := startIngest(t, cfg)
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	status, body := e.upload(receiver, 0, 1)
	require.Equal(t, 202, status, body)

	e.nats.FailWrites(t)
	for range 2 {
		status, body = e.upload(receiver, 1, 1)
		require.Equal(t, 503, status, body)
	}
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"responds, but confirms no uploads`)

	e.nats.Restart(t)
	awaitReadiness(t, ops, 200, "ready")
	status, body = e.upload(receiver, 1, 1)
	require.Equal(t, 202, status, body)
	require.NoError(t, r.end())
}
