package teamcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/teamcache"
)

const maxQueries = 4

// newTogether returns a Together of one read at a time, which answers a query with its square.
func newTogether(begin func(queries []int) error) *teamcache.Together[int, int] {
	return teamcache.NewTogether(teamcache.TogetherConfig[int, int]{
		Timeout: time.Minute, MaxReads: 1, MaxQueries: maxQueries,
		Read: func(_ context.Context, queries []int) (answers []int, err error) {
			err = begin(queries)
			for _, q := range queries {
				answers = append(answers, q*q)
			}
			return answers, err
		},
	})
}

// A query is read at once. Those that arrive meanwhile share the next reads, in their order and without those that gave
// up.
func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads [][]int
		proceed := make(chan struct{})
		together := newTogether(func(queries []int) error {
			reads = append(reads, queries)
			<-proceed
			return nil
		})
		var asked errgroup.Group
		impatient, giveUp := context.WithCancel(t.Context())
		for n := range 8 {
			ctx := t.Context()
			if n == 2 {
				ctx = impatient
			}
			asked.Go(func() error {
				answer, err := together.Ask(ctx, n)
				if n == 2 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("the impatient query got %d, %v", answer, err)
					}
					return nil
				}
				if answer != n*n {
					t.Errorf("%d got %d", n, answer)
				}
				return err
			})
			synctest.Wait()
		}
		giveUp()
		synctest.Wait()
		close(proceed)
		require.NoError(t, asked.Wait())
		require.Equal(t, [][]int{{0}, {1, 3, 4, 5}, {6, 7}}, reads)
		answer, err := together.Ask(t.Context(), 9)
		require.NoError(t, err)
		require.Equal(t, 81, answer)
	})
}

// An error or a panic goes to the queries of one read.
func TestTogetherErrors(t *testing.T) {
	t.Parallel()
	results := []func() error{
		func() error { return errors.New("unavailable") },
		func() error { panic("broken") },
		func() error { return nil },
	}
	together := newTogether(func([]int) error {
		result := results[0]
		results = results[1:]
		return result()
	})
	_, err := together.Ask(t.Context(), 1)
	require.EqualError(t, err, "unavailable")
	_, err = together.Ask(t.Context(), 1)
	require.ErrorContains(t, err, "panic: broken")
	answer, err := together.Ask(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 4, answer)

	short := teamcache.NewTogether(teamcache.TogetherConfig[int, int]{
		Timeout: time.Minute, MaxReads: 1, MaxQueries: maxQueries,
		Read: func(context.Context, []int) ([]int, error) { return nil, nil },
	})
	_, err = short.Ask(t.Context(), 1)
	require.ErrorContains(t, err, "0 answers")
}

// A read that takes too long ends, and its queries get the error.
func TestTogetherTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		together := teamcache.NewTogether(teamcache.TogetherConfig[int, int]{
			Timeout: time.Minute, MaxReads: 1, MaxQueries: maxQueries,
			Read: func(ctx context.Context, _ []int) ([]int, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		_, err := together.Ask(t.Context(), 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
