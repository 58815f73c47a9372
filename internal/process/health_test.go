package process_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dependency is a dependency that a test can make unavailable.
type dependency struct {
	unavailable atomic.Pointer[process.UnavailableError]
	hang        atomic.Bool // like a host behind a broken connection
}

func (s *dependency) probe(ctx context.Context) error {
	if s.hang.Load() {
		<-ctx.Done()
		return &process.UnavailableError{Reason: "does not answer", Cause: ctx.Err()}
	}
	if err := s.unavailable.Load(); err != nil {
		return err
	}
	return nil
}

// withHealth runs a test with a fake clock and a health that is probed. The first probe finds the dependency as first
// says, where nil means available: it may run before the test does.
func withHealth(
	t *testing.T, first *process.UnavailableError,
	test func(t *testing.T, h *process.Health, need *dependency, log *bytes.Buffer),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		need := &dependency{}
		need.unavailable.Store(first)
		h := process.NewHealth(zerolog.New(&log))
		h.Need("database", need.probe)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.Run(ctx)
		}()
		test(t, h, need, &log)
		cancel()
		<-done
	})
}

func TestHealthMissing(t *testing.T) {
	t.Parallel()
	migrate := &process.UnavailableError{Reason: "was never migrated"}
	withHealth(t, migrate, func(t *testing.T, h *process.Health, need *dependency, _ *bytes.Buffer) {
		t.Helper()
		synctest.Wait()
		require.Equal(t, []process.Missing{{"process", "is starting"}, {"database", "was never migrated"}}, h.Missing())

		need.unavailable.Store(nil)
		require.NoError(t, h.Await(t.Context()))
		require.Equal(t, []process.Missing{{"process", "is starting"}}, h.Missing())

		h.Serving()
		require.NoError(t, h.AwaitReady(t.Context()))
		require.Empty(t, h.Missing())

		h.Stopping()
		h.Serving() // Stopping is permanent.
		require.Equal(t, []process.Missing{{"process", "is shutting down"}}, h.Missing())
	})
}

func TestHealthDetectsLoss(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		withHealth(t, nil, func(t *testing.T, h *process.Health, need *dependency, _ *bytes.Buffer) {
			t.Helper()
			h.Serving()
			require.NoError(t, h.AwaitReady(t.Context()))
			need.unavailable.Store(&process.UnavailableError{Reason: "refuses"})
			need.hang.Store(hangs)
			lost := time.Now()
			for len(h.Missing()) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			require.LessOrEqual(t, time.Since(lost), 13*time.Second)

			need.unavailable.Store(nil)
			need.hang.Store(false)
			back := time.Now()
			require.NoError(t, h.AwaitReady(t.Context()))
			require.LessOrEqual(t, time.Since(back), 8*time.Second)
		})
	}
}

func TestHealthOneFailedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		h := process.NewHealth(zerolog.Nop())
		h.Need("database", func(context.Context) error {
			if probes.Add(1) == 2 {
				return errors.New("lost one packet")
			}
			return nil
		})
		h.Serving()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go h.Run(ctx)
		require.NoError(t, h.AwaitReady(ctx))
		for ctx.Err() == nil {
			require.Empty(t, h.Missing())
			time.Sleep(50 * time.Millisecond)
		}
		require.Greater(t, probes.Load(), int32(5))
	})
}

func TestHealthLogsOutageOnce(t *testing.T) {
	t.Parallel()
	silent := &process.UnavailableError{Reason: "does not answer", Cause: errors.New("dial: refused")}
	withHealth(t, silent, func(t *testing.T, h *process.Health, need *dependency, log *bytes.Buffer) {
		t.Helper()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `"error":"dial: refused"`)
		require.Contains(t, log.String(), `"reason":"does not answer"`)

		need.unavailable.Store(&process.UnavailableError{Reason: "was never migrated"})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Contains(t, log.String(), `"reason":"was never migrated"`)

		need.unavailable.Store(nil)
		require.NoError(t, h.Await(t.Context()))
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "dependency available")
	})
}

func TestHealthAwaitContext(t *testing.T) {
	t.Parallel()
	h := process.NewHealth(zerolog.Nop())
	h.Need("queue", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Await(ctx), context.Canceled)
	require.ErrorIs(t, h.AwaitReady(ctx), context.Canceled)
	require.Equal(t, []process.Missing{{"process", "is starting"}, {"queue", "was not checked yet"}}, h.Missing())
}
