package ops_test

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

	"roomsensor/internal/ops"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// switchable is something that a process needs and that a test can take away.
type switchable struct {
	away atomic.Pointer[ops.UnavailableError]
	hang atomic.Bool // like a host behind a cut line
}

func (s *switchable) probe(ctx context.Context) error {
	if s.hang.Load() {
		<-ctx.Done()
		return &ops.UnavailableError{Reason: "does not answer", Cause: ctx.Err()}
	}
	if err := s.away.Load(); err != nil {
		return err
	}
	return nil
}

// inBubble runs a test with a clock of its own and a health that is probed.
func inBubble(t *testing.T, test func(t *testing.T, h *ops.Health, need *switchable, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		need := &switchable{}
		h := ops.NewHealth(zerolog.New(&log))
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

func TestReadinessFollowsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *ops.Health, need *switchable, _ *bytes.Buffer) {
		t.Helper()
		need.away.Store(&ops.UnavailableError{Reason: "was never migrated"})
		synctest.Wait()
		require.Equal(t, []ops.Missing{{"process", "is starting"}, {"database", "was never migrated"}}, h.Missing())

		need.away.Store(nil)
		require.NoError(t, h.Await(t.Context()))
		require.Equal(t, []ops.Missing{{"process", "is starting"}}, h.Missing())

		h.Serving()
		require.NoError(t, h.AwaitReady(t.Context()))
		require.Empty(t, h.Missing())

		h.Stopping()
		h.Serving() // A start that comes too late.
		require.Equal(t, []ops.Missing{{"process", "is shutting down"}}, h.Missing())
	})
}

func TestLossIsNoticedWithin20Seconds(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		inBubble(t, func(t *testing.T, h *ops.Health, need *switchable, _ *bytes.Buffer) {
			t.Helper()
			h.Serving()
			require.NoError(t, h.AwaitReady(t.Context()))
			need.away.Store(&ops.UnavailableError{Reason: "refuses"})
			need.hang.Store(hangs)
			lost := time.Now()
			for len(h.Missing()) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			require.LessOrEqual(t, time.Since(lost), 13*time.Second)

			need.away.Store(nil)
			need.hang.Store(false)
			back := time.Now()
			require.NoError(t, h.AwaitReady(t.Context()))
			require.LessOrEqual(t, time.Since(back), 8*time.Second)
		})
	}
}

func TestOneFailedProbeTurnsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		h := ops.NewHealth(zerolog.Nop())
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

func TestALongOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, h *ops.Health, need *switchable, log *bytes.Buffer) {
		t.Helper()
		need.away.Store(&ops.UnavailableError{Reason: "does not answer", Cause: errors.New("dial: refused")})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `"cause":"dial: refused"`)
		require.Contains(t, log.String(), "database does not answer")

		need.away.Store(&ops.UnavailableError{Reason: "was never migrated"})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Contains(t, log.String(), "database was never migrated")

		need.away.Store(nil)
		require.NoError(t, h.Await(t.Context()))
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "database answers")
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := ops.NewHealth(zerolog.Nop())
	h.Need("queue", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Await(ctx), context.Canceled)
	require.ErrorIs(t, h.AwaitReady(ctx), context.Canceled)
	require.Equal(t, []ops.Missing{{"process", "is starting"}, {"queue", "was not looked at yet"}}, h.Missing())
}
