package ingest

import (
	"context"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

func (b *tables) lander() *lander {
	return &lander{
		units: b.Store, ping: b.Ping, log: zerolog.Nop(),
		write: func(ctx context.Context, batch roomsensor.Batch) error {
			_, err := b.WriteBatch(ctx, batch)
			return err
		},
	}
}

// Decisions 37 to 41 on the real database: any multiset, any order, any split,
// by several workers at once, gives what the model says; and giving all of it
// again changes no row and no ingested_at.
func TestAnyOrderAndSplitGivesTheSameRealTables(t *testing.T) {
	t.Parallel()
	tables := newTables(t)
	rapid.Check(t, func(rt *rapid.T) {
		tables.enlist(rt)
		letters := tables.fleet.letters(rt)
		landAtOnce(rt, tables, groups(rt, letters))
		require.Equal(rt, tables.fleet.expect(letters), tables.snapshot(rt))

		before := tables.stamps(t)
		landAtOnce(rt, tables, groups(rt, letters))
		require.Equal(rt, before, tables.stamps(t))
		require.Equal(rt, tables.fleet.expect(letters), tables.snapshot(rt))
	})
}

func landAtOnce(t require.TestingT, tables *tables, batches [][]*delivery) {
	var group errgroup.Group
	for _, batch := range batches {
		group.Go(func() error {
			_, err := tables.lander().land(context.Background(), batch)
			return err
		})
	}
	require.NoError(t, group.Wait())
}
