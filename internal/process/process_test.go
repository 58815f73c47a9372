package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/store/ops"
)

// recorder keeps the order in which the parts of a process ended.
type recorder []string

func (r *recorder) closer(name string, err error) func(context.Context) error {
	return func(context.Context) error {
		*r = append(*r, name)
		return err
	}
}

// runUntilDone runs until its context ends.
func runUntilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// waitForDone is a start that waits for a dependency until its context ends.
func waitForDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRunShutdown(t *testing.T) {
	t.Parallel()
	t.Run("closers run in reverse, and work is canceled after them", func(t *testing.T) {
		t.Parallel()
		var order recorder
		ctx, cancel := context.WithCancel(t.Context())
		err := process.Run(ctx, process.Options{}, func(_ context.Context, p *process.Process) error {
			p.OnClose("first", order.closer("first", nil))
			p.Go("work", func(ctx context.Context) error {
				<-ctx.Done()
				order = append(order, "work")
				return nil
			})
			p.OnClose("second", order.closer("second", nil))
			cancel()
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, recorder{"second", "first", "work"}, order)
	})
	t.Run("a requested stop ends a start that waits, without an error", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, process.Run(ctx, process.Options{}, func(ctx context.Context, p *process.Process) error {
			p.Go("ops", runUntilDone)
			return waitForDone(ctx)
		}))
	})
	t.Run("a stop that is requested is delayed, while the process is not ready", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var stopping, closed time.Time
			err := process.Run(ctx, process.Options{}, func(ctx context.Context, p *process.Process) error {
				p.OnClose("listener", func(context.Context) error { closed = time.Now(); return nil })
				p.Serving(5 * time.Second)
				require.NoError(t, p.Health.AwaitReady(ctx))
				cancel()
				p.Go("watch", func(context.Context) error {
					time.Sleep(time.Millisecond)
					require.Equal(t, []process.Missing{{"process", "is shutting down"}}, p.Health.Missing())
					stopping = time.Now()
					return nil
				})
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, 5*time.Second-time.Millisecond, closed.Sub(stopping))
		})
	})
	t.Run("a process that fails does not wait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := process.Run(t.Context(), process.Options{}, func(_ context.Context, p *process.Process) error {
				p.Serving(5 * time.Second)
				p.Go("part", func(context.Context) error { return errors.New("failed") })
				return nil
			})
			require.ErrorContains(t, err, "failed")
			require.Zero(t, time.Since(began))
		})
	})
	t.Run("the shutdown has one deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			release := make(chan struct{})
			err := process.Run(ctx, process.Options{}, func(_ context.Context, p *process.Process) error {
				p.OnClose("a pool that is in use", process.Closing(func() { <-release }))
				p.OnClose("a slow request", func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				return nil
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, process.ShutdownTimeout, time.Since(began))
			close(release)
		})
	})
}

func TestRunFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	t.Run("a part that fails stops the process, and all closers run", func(t *testing.T) {
		t.Parallel()
		var order recorder
		stuck := errors.New("stuck")
		err := process.Run(t.Context(), process.Options{}, func(_ context.Context, p *process.Process) error {
			p.OnClose("a", order.closer("a", stuck))
			p.OnClose("b", order.closer("b", nil))
			p.Go("other", runUntilDone)
			p.Go("part", func(context.Context) error { return broken })
			return nil
		})
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "part: broken")
		require.ErrorIs(t, err, stuck, "the error of a closer is returned as well")
		require.Equal(t, recorder{"b", "a"}, order)
	})
	t.Run("a start that fails is closed", func(t *testing.T) {
		t.Parallel()
		var order recorder
		inUse := errors.New("address in use")
		err := process.Run(t.Context(), process.Options{}, func(_ context.Context, p *process.Process) error {
			p.OnClose("ops", order.closer("ops", nil))
			p.Go("ops", runUntilDone)
			return inUse
		})
		require.ErrorIs(t, err, inUse)
		require.Equal(t, recorder{"ops"}, order)
	})
	t.Run("a part that fails ends a start that waits", func(t *testing.T) {
		t.Parallel()
		err := process.Run(t.Context(), process.Options{}, func(ctx context.Context, p *process.Process) error {
			p.Go("part", func(context.Context) error { return broken })
			return waitForDone(ctx)
		})
		require.ErrorIs(t, err, broken)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// LogDatabase names the value that max_locks_per_transaction needs, only if it is too small.
func TestLogDatabaseLocks(t *testing.T) {
	t.Parallel()
	logged := func(database ops.Database) string {
		var text strings.Builder
		(&process.Process{Options: process.Options{Log: zerolog.New(&text)}}).LogDatabase(database, &config.API{})
		return text.String()
	}
	require.Contains(t, logged(ops.Database{MaxLocks: 64, Chunks: 621}), `"max_locks_per_transaction":64,"needed":2048`)
	require.NotContains(t, logged(ops.Database{MaxLocks: 64, Chunks: 32}), "max_locks_per_transaction")
}
