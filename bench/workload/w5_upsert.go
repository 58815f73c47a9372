package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/bench/baseline"
	"roomsensor/bench/env"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// upsertBatches are the numbers of readings per transaction of both sides: the least of a full batch of a worker, and
// the most, which it writes in a backlog.
var upsertBatches = []int{2000, 8000}

// upsertEnv is the database of W5, which has the devices of rows.
type upsertEnv struct {
	pool    *pgxpool.Pool
	store   *store.Store
	rows    []roomsensor.DeviceMeasurement // in the order of arrival
	batch   int                            // readings per transaction
	arrival time.Time                      // of the uploads that were stored last

	window roomsensor.Window // contains rows
}

// upsert is W5: readings stored as a worker does, on one connection, compared with CopyFrom into the same table.
func (s *Suite) upsert(ctx context.Context) error {
	w, err := s.openUpsert(ctx)
	if err != nil {
		return err
	}
	defer w.store.Close()
	for _, w.batch = range upsertBatches {
		if err := s.compareUpserts(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) compareUpserts(ctx context.Context, w *upsertEnv) error {
	fresh, first, err := s.Compare(ctx, w.rate(w.upsert, true), w.rate(w.copyFrom, true))
	if err != nil {
		return err
	}
	again, second, err := s.Compare(ctx, w.rate(w.upsert, false), w.rate(w.copyFrom, true))
	if err != nil {
		return err
	}
	row := report.Row{
		ID: "W5", Workload: fmt.Sprintf("upsert of new readings, %d a transaction", w.batch), Unit: "rows/s", Ours: fresh,
		Against: "pgx CopyFrom", Baseline: first, Minimum: 0.5, Target: 0.65,
	}
	s.Add(row)
	row.Workload = fmt.Sprintf("upsert of readings delivered again, %d a transaction", w.batch)
	row.Ours, row.Baseline, row.Minimum, row.Target = again, second, 0.65, 1
	s.Add(row)
	return nil
}

func (s *Suite) openUpsert(ctx context.Context) (*upsertEnv, error) {
	database, err := s.WithNewDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := database.InsertTeam(ctx, &s.Fleet); err != nil {
		return nil, err
	}
	w := &upsertEnv{
		pool: database.Pool, rows: s.newestReadings(s.UpsertRows), arrival: s.Fleet.Until,
		window: roomsensor.Window{To: s.Fleet.Until},
	}
	w.store, err = store.Open(ctx, database.Database, store.Ingest)
	return w, err
}

// newestReadings returns the newest readings of the fleet, bucket by bucket.
func (s *Suite) newestReadings(n int) (rows []roomsensor.DeviceMeasurement) {
	at := s.Fleet.Until
	for len(rows) < n {
		at = at.Add(-roomsensor.BucketLength)
		for i := range min(s.Fleet.Devices, n-len(rows)) {
			rows = append(rows, roomsensor.DeviceMeasurement{DeviceID: s.Fleet.DeviceID(i), Measurement: s.Fleet.Reading(i, at)})
		}
	}
	return rows
}

// rate returns the rows per second of a function that stores all rows, into an empty table or one that has them all.
func (w *upsertEnv) rate(store func(context.Context, []roomsensor.DeviceMeasurement) error, empty bool) Side {
	return func(ctx context.Context) (float64, error) {
		if err := w.prepare(ctx, empty); err != nil {
			return 0, err
		}
		var took time.Duration
		for batch := range slices.Chunk(w.rows, w.batch) {
			began := time.Now()
			if err := store(ctx, batch); err != nil {
				return 0, err
			}
			took += time.Since(began)
		}
		return float64(len(w.rows)) / took.Seconds(), env.CheckStored(ctx, w.pool, w.window, len(w.rows))
	}
}

// prepare empties the table and creates its chunks, or fills it.
func (w *upsertEnv) prepare(ctx context.Context, empty bool) error {
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

// upsert stores rows as a worker does, with a heartbeat of each device. The time to sort them by key is included.
func (w *upsertEnv) upsert(ctx context.Context, rows []roomsensor.DeviceMeasurement) error {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(x, y roomsensor.DeviceMeasurement) int {
		return cmp.Or(slices.Compare(x.DeviceID[:], y.DeviceID[:]), x.MeasuredAt.Compare(y.MeasuredAt))
	})
	w.arrival = w.arrival.Add(time.Second)
	var seen []roomsensor.DeviceHeartbeat
	for i := range sorted {
		if i == 0 || sorted[i].DeviceID != sorted[i-1].DeviceID {
			seen = append(seen, roomsensor.DeviceHeartbeat{DeviceID: sorted[i].DeviceID, LastSeenAt: w.arrival})
		}
	}
	_, err := w.store.WriteBatch(ctx, roomsensor.Batch{Rows: sorted, Seen: seen})
	return err
}

func (w *upsertEnv) copyFrom(ctx context.Context, rows []roomsensor.DeviceMeasurement) error {
	return baseline.CopyFrom(ctx, w.pool, rows)
}
