package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/bench/bar"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// upsertBatch is the readings of one transaction, of both sides: what a worker gathers before it writes.
const upsertBatch = 2000

// writing is a database of its own for W5.
type writing struct {
	address string
	pool    *pgxpool.Pool
	store   *store.Store
	rows    []roomsensor.DeviceMeasurement // as they arrive
}

// upsert is W5: readings stored as a worker does, on one connection, against CopyFrom into the same table.
func (s *suite) upsert(ctx context.Context) error {
	w, err := s.openWriting(ctx)
	if err != nil {
		return err
	}
	defer w.store.Close()
	fresh, first, err := s.contest(ctx, w.timed(w.upsert, true), w.timed(w.copyFrom, true))
	if err != nil {
		return err
	}
	again, second, err := s.contest(ctx, w.timed(w.upsert, false), w.timed(w.copyFrom, true))
	if err != nil {
		return err
	}
	s.add(report.Row{
		ID: "W5", Workload: "upsert of new readings", Unit: "rows/s", Ours: fresh, Against: "pgx CopyFrom", Bar: first,
		Reach: 0.5, Aim: 0.65,
	})
	s.add(report.Row{
		ID: "W5", Workload: "upsert of readings delivered again", Unit: "rows/s", Ours: again, Against: "pgx CopyFrom",
		Bar: second, Reach: 0.65, Aim: 1,
	})
	if err := s.profileWriting(ctx, "w5-new", w, true); err != nil {
		return err
	}
	return s.profileWriting(ctx, "w5-again", w, false)
}

// profileWriting profiles the upsert, which runs in this process.
func (s *suite) profileWriting(ctx context.Context, name string, w *writing, empty bool) error {
	if s.Profile == "" {
		return nil
	}
	err := withOwnOps(ctx, func(ops string) error { return s.profile(ctx, name, w.timed(w.upsert, empty), ops) })
	if err != nil {
		return err
	}
	return s.plans(name, w.address, func(address string) error {
		explained := *w
		if explained.store, err = store.Open(ctx, address, store.Ingest); err != nil {
			return err
		}
		defer explained.store.Close()
		_, err = explained.timed(explained.upsert, empty)(ctx)
		return err
	})
}

func (s *suite) openWriting(ctx context.Context) (*writing, error) {
	address, err := s.NewDatabase(ctx)
	if err != nil {
		return nil, err
	}
	w := &writing{address: address, rows: s.arriving(s.UpsertRows)}
	if w.pool, err = s.Connect(ctx, address); err != nil {
		return nil, err
	}
	w.store, err = store.Open(ctx, address, store.Ingest)
	return w, err
}

// arriving is the newest readings of the fleet, bucket by bucket.
func (s *suite) arriving(n int) (rows []roomsensor.DeviceMeasurement) {
	at := s.fleet.Until
	for len(rows) < n {
		at = at.Add(-roomsensor.BucketLength)
		for i := range min(s.fleet.Devices, n-len(rows)) {
			rows = append(rows, roomsensor.DeviceMeasurement{DeviceID: s.fleet.DeviceID(i), Measurement: s.fleet.Reading(i, at)})
		}
	}
	return rows
}

// timed returns the rows a second of a way to store all rows: into an empty table, or over what is there, which is all
// of them.
func (w *writing) timed(store func(context.Context, []roomsensor.DeviceMeasurement) error, empty bool) side {
	return func(ctx context.Context) (float64, error) {
		if err := w.prepare(ctx, empty); err != nil {
			return 0, err
		}
		var took time.Duration
		for batch := range slices.Chunk(w.rows, upsertBatch) {
			began := time.Now()
			if err := store(ctx, batch); err != nil {
				return 0, err
			}
			took += time.Since(began)
		}
		var stored int
		if err := w.pool.QueryRow(ctx, "SELECT count(*) FROM readings").Scan(&stored); err != nil || stored != len(w.rows) {
			return 0, fmt.Errorf("%d of %d rows are there: %w", stored, len(w.rows), err)
		}
		return float64(len(w.rows)) / took.Seconds(), nil
	}
}

// prepare empties the table, with chunks that stand already, or fills it.
func (w *writing) prepare(ctx context.Context, empty bool) error {
	if !empty {
		return w.upsert(ctx, w.rows)
	}
	if _, err := w.pool.Exec(ctx, "TRUNCATE readings"); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	if err := w.upsert(ctx, []roomsensor.DeviceMeasurement{w.rows[0], w.rows[len(w.rows)-1]}); err != nil {
		return err
	}
	if _, err := w.pool.Exec(ctx, "DELETE FROM readings"); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}

// upsert stores rows as a worker does: sorted by key. Sorting is part of it.
func (w *writing) upsert(ctx context.Context, rows []roomsensor.DeviceMeasurement) error {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(x, y roomsensor.DeviceMeasurement) int {
		return cmp.Or(slices.Compare(x.DeviceID[:], y.DeviceID[:]), x.MeasuredAt.Compare(y.MeasuredAt))
	})
	_, err := w.store.WriteBatch(ctx, roomsensor.Batch{Rows: sorted})
	return err
}

func (w *writing) copyFrom(ctx context.Context, rows []roomsensor.DeviceMeasurement) error {
	return bar.CopyFrom(ctx, w.pool, rows)
}
