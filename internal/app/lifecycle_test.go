package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// recorder keeps the order in which a process ended.
type recorder []string

func (r *recorder) closer(name string, err error) func(context.Context) error {
	return func(context.Context) error {
		*r = append(*r, name)
		return err
	}
}

// blocked runs until its context ends.
func blocked(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func TestSuperviseClosesInReverse(t *testing.T) {
	t.Parallel()
	var order recorder
	ctx, cancel := context.WithCancel(t.Context())
	err := supervise(ctx, zerolog.Nop(), func(_ context.Context, l *lifecycle) error {
		l.push("first", order.closer("first", nil))
		l.run("work", func(ctx context.Context) error {
			<-ctx.Done()
			order = append(order, "work")
			return nil
		})
		l.push("second", order.closer("second", nil))
		cancel()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, recorder{"second", "first", "work"}, order, "work is cancelled only after the closers")
}

func TestSuperviseEndsWhenAPartFails(t *testing.T) {
	t.Parallel()
	var order recorder
	broken, stuck := errors.New("broken"), errors.New("stuck")
	err := supervise(t.Context(), zerolog.Nop(), func(_ context.Context, l *lifecycle) error {
		l.push("a", order.closer("a", stuck))
		l.push("b", order.closer("b", nil))
		l.run("other", blocked)
		l.run("part", func(context.Context) error { return broken })
		return nil
	})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "part: broken")
	require.ErrorIs(t, err, stuck, "a closer that fails is told, and the others run")
	require.Equal(t, recorder{"b", "a"}, order)
}

func TestSuperviseEndsAStartThatFails(t *testing.T) {
	t.Parallel()
	var order recorder
	taken := errors.New("address in use")
	err := supervise(t.Context(), zerolog.Nop(), func(_ context.Context, l *lifecycle) error {
		l.push("ops", order.closer("ops", nil))
		l.run("ops", blocked)
		return taken
	})
	require.ErrorIs(t, err, taken)
	require.Equal(t, recorder{"ops"}, order)
}

func TestSuperviseEndsAStartThatWaits(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, l *lifecycle) error {
		l.run("ops", blocked)
		return blockedStart(ctx)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, supervise(ctx, zerolog.Nop(), waits), "being told to end is no error")

	broken := errors.New("broken")
	err := supervise(t.Context(), zerolog.Nop(), func(ctx context.Context, l *lifecycle) error {
		l.run("part", func(context.Context) error { return broken })
		return blockedStart(ctx)
	})
	require.ErrorIs(t, err, broken, "a part that fails ends a start that waits")
	require.NotErrorIs(t, err, context.Canceled)
}

func blockedStart(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestShutdownHasOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		release := make(chan struct{})
		err := supervise(ctx, zerolog.Nop(), func(_ context.Context, l *lifecycle) error {
			l.push("a pool that is in use", closing(func() { <-release }))
			l.push("a slow request", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, shutdownTimeout, time.Since(begun))
		close(release)
	})
}

func TestEveryGoesOnUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Second)
		defer cancel()
		times := 0
		require.NoError(t, every(ctx, 10*time.Minute, func() { times++ }))
		require.Equal(t, 7, times)
	})
}

func TestPauseGrowsAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for attempt, longest := range map[int]time.Duration{0: firstPause, 3: 8 * firstPause, 100: lastPause} {
			begun := time.Now()
			require.NoError(t, pause(t.Context(), attempt))
			require.GreaterOrEqual(t, time.Since(begun), longest/2)
			require.Less(t, time.Since(begun), longest)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, pause(ctx, 100), context.Canceled)
	})
}
