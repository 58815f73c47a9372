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

// The database refuses a reading for good: it is a reject of its own, and every
// other reading of the batch and of its upload is stored (decision 41).
func TestWhatTheRealDatabaseRefusesIsAReject(t *testing.T) {
	t.Parallel()
	tables := newTables(t)
	_, err := tables.sql.Exec(t.Context(), "ALTER TABLE readings ADD CONSTRAINT unlucky CHECK (lux <> 13)")
	require.NoError(t, err)
	var batch []*delivery
	for i := range 20 {
		readings := at(clock(10, 5*i, 0), `"lux":7`)
		if i%9 == 4 {
			readings += "," + at(clock(18, 5*i, 0), `"lux":13`) + "," + at(clock(19, 5*i, 0), `"lux":8`)
		}
		batch = append(batch, textOf(tables.fleet.second, uint64(i+1), readings))
	}
	_, err = tables.lander().land(t.Context(), batch)
	require.NoError(t, err)
	got := tables.snapshot(t)
	require.Len(t, got.rows, 22)
	unit := tables.fleet.second
	require.Equal(t, map[string]string{
		"5 not_storable":  string(textOf(unit, 5, at(clock(18, 20, 0), `"lux":13`)).text),
		"14 not_storable": string(textOf(unit, 14, at(clock(18, 65, 0), `"lux":13`)).text),
	}, got.rejects)
	for _, d := range batch {
		require.True(t, d.stored)
	}
}

// What is too much or too slow for the database is never a reject, even when
// no part of it passes.
func TestWhatIsTooMuchForTheRealDatabaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	tables := newTables(t)
	for _, state := range []string{"53400", "57014", "40001", "55P03"} {
		_, err := tables.sql.Exec(t.Context(), `CREATE OR REPLACE FUNCTION unable() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION USING ERRCODE = '`+state+`'; END $$;
			CREATE OR REPLACE TRIGGER unable BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION unable()`)
		require.NoError(t, err)
		d := textOf(tables.fleet.second, 1, at(clock(10, 0, 0), "")+","+at(clock(10, 5, 0), ""))
		_, err = tables.lander().land(t.Context(), []*delivery{d})
		require.Error(t, err, state)
		require.False(t, d.stored)
		require.Empty(t, tables.snapshot(t).rejects)
	}
	_, err := tables.sql.Exec(t.Context(), "DROP TRIGGER unable ON readings")
	require.NoError(t, err)
	d := textOf(tables.fleet.second, 1, at(clock(10, 0, 0), "")+","+at(clock(10, 5, 0), ""))
	_, err = tables.lander().land(t.Context(), []*delivery{d})
	require.NoError(t, err)
	require.Len(t, tables.snapshot(t).rows, 2)
}
