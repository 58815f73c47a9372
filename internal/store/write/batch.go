// Package write stores what workers received: batches of readings, the state of devices, and rejects.
package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/feed"
	"roomsensor/internal/store/pg"
)

const (
	// defaultMinCopyRows is from how many rows on COPY into a temporary table is cheaper than arrays, including its two
	// extra round trips. At 8,000 rows, as a worker with a backlog writes, COPY takes an eighth less CPU time, and a sixth
	// less if the rows are stored already (bench/NOTES.md).
	defaultMinCopyRows = 2_000
	// minRowsPerDevice is from how many rows per device on, on average, one check whether any of them is stored is
	// cheaper than a check per row.
	minRowsPerDevice = 8
	// writeAttempts is how often a transaction is attempted that copies new rows into the table while other workers
	// store some of the same rows, or rows of the same chunks: COPY fills one chunk after the other, so the order of the
	// rows does not prevent every deadlock. The next attempt finds the rows that are stored and merges with them.
	writeAttempts = 3
)

// Store writes batches and rejects. It is safe for concurrent use.
type Store struct {
	*pg.DB
	MinCopyRows int // from how many rows on a batch is copied; tests set other values
}

// New returns a store with the pools of a role.
func New(d *pg.DB) *Store { return &Store{d, defaultMinCopyRows} }

// WriteBatch stores a batch in one transaction and returns how many readings changed. After ErrNotStorable the same
// batch fails again, after ErrRefused smaller parts of it may succeed, and after any other error, ErrBlocked included,
// the same batch may succeed.
func (s *Store) WriteBatch(ctx context.Context, b roomsensor.Batch) (changed int64, err error) {
	err = s.inWrite(ctx, &b, func(tx pgx.Tx) error {
		changed, err = s.WriteIn(ctx, tx, b)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("storing a batch: %w", pg.TranslateWrite(err))
	}
	return changed, nil
}

// WriteReplay stores the batch of a replayed reject and sets the time of the replay. It does not store the rejects of
// the batch, because the original reject stays (decision 41). Errors are those of WriteBatch.
func (s *Store) WriteReplay(ctx context.Context, rejectID uuid.UUID, b roomsensor.Batch) error {
	b.Rejects = nil
	err := s.inWrite(ctx, &b, func(tx pgx.Tx) error {
		if _, err := s.WriteIn(ctx, tx, b); err != nil {
			return err
		}
		if err := s.SetActor(ctx, tx); err != nil {
			return err
		}
		return s.Queries.RejectMarkReplayed(ctx, tx, rejectID)
	})
	if err != nil {
		return fmt.Errorf("storing a replay: %w", pg.TranslateWrite(err))
	}
	return nil
}

// writing begins a transaction that updates the state of devices and has a time in the change feed, in one round trip.
var writing = pgx.TxOptions{BeginQuery: "begin;\n" + db.WorkerSet + ";\n" + db.FeedBegin}

// inWrite calls run in a transaction of writing. It calls it again, up to writeAttempts times, if another worker stored
// a row first that run took for new, or if both waited for each other; and after it changed the batch, if a device got
// another sampling meanwhile.
func (s *Store) inWrite(ctx context.Context, b *roomsensor.Batch, run func(pgx.Tx) error) (err error) {
	for range writeAttempts {
		err = pgx.BeginTxFunc(ctx, s.Pool, writing, run)
		if sampled, ok := errors.AsType[*sampledError](err); ok {
			sampled.moveTo(b)
			continue
		}
		if !pg.Violates(err, pg.StateUnique, "") && !pg.Violates(err, pg.StateDeadlock, "") {
			break
		}
	}
	return err //nolint:wrapcheck // Callers wrap it.
}

// WriteIn is WriteBatch in a transaction that began with writing. Its errors are those of the database.
func (s *Store) WriteIn(ctx context.Context, tx pgx.Tx, b roomsensor.Batch) (changed int64, err error) {
	if len(b.Rows) > 0 {
		if changed, err = s.writeReadings(ctx, tx, b.Rows); err != nil {
			return 0, err
		}
	}
	if changed == 0 {
		if err := s.checkSampling(ctx, tx, b.Rows); err != nil {
			return 0, err
		}
	}
	rows := b.Rows
	if len(b.Samples) > 0 {
		means, err := s.writeSamples(ctx, tx, &b)
		if err != nil {
			return 0, err
		}
		changed += means
		rows = withSamples(b.Rows, b.Samples)
	}
	var rest pgx.Batch // One round trip.
	var written []feed.DeviceBuckets
	if changed > 0 {
		feed.QueueChanges(&rest, rows)
		written = bucketsOf(rows)
	}
	check := queueHeartbeats(&rest, b.Seen, written, b.Rows)
	if len(b.Rejects) > 0 {
		rest.Queue(db.RejectInsert, pg.Positional(rejectParams(b.Rejects))...)
	}
	if err := tx.SendBatch(ctx, &rest).Close(); err != nil {
		return 0, fmt.Errorf("writing what belongs to readings: %w", err)
	}
	return changed, check()
}

// checkSampling returns a sampledError if a device of rows may have samples. For rows that change nothing, no statement
// about the state of devices would notice that.
func (s *Store) checkSampling(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) error {
	if len(rows) == 0 {
		return nil
	}
	buckets := bucketsOf(rows)
	ids := make([]uuid.UUID, len(buckets))
	for i := range buckets {
		ids[i] = buckets[i].ID
	}
	sampled, err := s.Queries.DeviceSampledList(ctx, tx, ids)
	if err != nil || len(sampled) == 0 {
		return err
	}
	moved := make(map[uuid.UUID]bool, len(sampled))
	for _, id := range sampled {
		moved[id] = true
	}
	return &sampledError{moved}
}

// writeReadings merges rows, which are sorted by key and have each key once, into the table and returns how many
// changed. It fails with StateUnique if it took rows for new and another worker stored one of them meanwhile.
func (s *Store) writeReadings(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) (int64, error) {
	if len(rows) < s.MinCopyRows {
		return s.Queries.ReadingUpsert(ctx, tx, upsertParams(rows))
	}
	fresh, err := s.areNew(ctx, tx, rows)
	if err != nil {
		return 0, err
	}
	into := db.ReadingCopy
	if !fresh {
		into = db.ReadingIncomingCopy
		// Each time, because PgBouncer may run each transaction in another session.
		if err := s.Queries.ReadingIncomingCreate(ctx, tx); err != nil {
			return 0, err
		}
	}
	copied, err := pg.CopyFrom(ctx, tx, into, copyRows(rows))
	if err != nil || fresh {
		return copied, err
	}
	return s.Queries.ReadingUpsertIncoming(ctx, tx)
}

// areNew reports whether nothing is stored between the first and the last row of each device. That is usual when a
// device that was offline uploads days at once; such rows need no conflict check each. With few rows per device it
// reports false without a check, and also if the time of the write is not now(), which COPY would set.
func (s *Store) areNew(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) (bool, error) {
	p := db.ReadingIsNewParams{WindowFrom: rows[0].Bucket(), WindowTo: rows[0].Bucket()}
	for i := range rows {
		id, bucket := rows[i].DeviceID, rows[i].Bucket()
		if last := len(p.DeviceIds) - 1; last >= 0 && p.DeviceIds[last] == id {
			p.LastAt[last] = bucket
		} else {
			p.DeviceIds, p.FirstAt, p.LastAt = append(p.DeviceIds, id), append(p.FirstAt, bucket), append(p.LastAt, bucket)
			if len(p.DeviceIds)*minRowsPerDevice > len(rows) {
				return false, nil
			}
		}
		if bucket.Before(p.WindowFrom) {
			p.WindowFrom = bucket
		}
		if bucket.After(p.WindowTo) {
			p.WindowTo = bucket
		}
	}
	return s.Queries.ReadingIsNew(ctx, tx, p)
}

// upsertParams returns rows as the arrays of ReadingUpsert. valid_mask tells which of the values are null.
func upsertParams(rows []roomsensor.DeviceMeasurement) db.ReadingUpsertParams {
	n := len(rows)
	p := db.ReadingUpsertParams{
		DeviceIds: make([]uuid.UUID, n), BucketAt: make([]time.Time, n), MeasuredAt: make([]time.Time, n),
		ValidMask: make([]int16, n), Co2Ppm: make([]float32, n), TempC: make([]float32, n),
		HumidityPct: make([]float32, n), Lux: make([]float32, n), SplDb: make([]float32, n),
	}
	for i := range rows {
		row := &rows[i]
		p.DeviceIds[i], p.BucketAt[i], p.MeasuredAt[i] = row.DeviceID, row.Bucket(), row.MeasuredAt
		p.ValidMask[i] = int16(row.Values.Mask())
		p.Co2Ppm[i], _ = row.Values.Get(roomsensor.CO2)
		p.TempC[i], _ = row.Values.Get(roomsensor.Temp)
		p.HumidityPct[i], _ = row.Values.Get(roomsensor.Humidity)
		p.Lux[i], _ = row.Values.Get(roomsensor.Lux)
		p.SplDb[i], _ = row.Values.Get(roomsensor.Sound)
	}
	return p
}

// copyRows returns rows in the binary format and the column order of ReadingCopy and ReadingIncomingCopy.
func copyRows(rows []roomsensor.DeviceMeasurement) []byte {
	const columns = 3 + roomsensor.MetricCount // Device, bucket, time of the measurement.
	const rowBytes = 2 + (4 + 16) + 2*(4+8) + roomsensor.MetricCount*(4+4)
	e := pg.NewCopyEncoder(len(rows) * rowBytes)
	for i := range rows {
		row := &rows[i]
		e.Row(columns)
		e.UUID(row.DeviceID)
		e.Time(row.Bucket())
		e.Time(row.MeasuredAt)
		e.Values(&row.Values)
	}
	return e.End()
}

// bucketsOf returns the devices in rows, which are sorted by key, with the first and the last bucket of each.
func bucketsOf(rows []roomsensor.DeviceMeasurement) (buckets []feed.DeviceBuckets) {
	for i := range rows {
		if i == 0 || rows[i-1].DeviceID != rows[i].DeviceID {
			buckets = append(buckets, feed.DeviceBuckets{ID: rows[i].DeviceID, First: rows[i].Bucket()})
		}
		buckets[len(buckets)-1].Last = rows[i].Bucket()
	}
	return buckets
}

// queueHeartbeats queues a statement that moves the state of devices forward to newer arrivals (decision 39) and
// readings. Both lists are sorted by device and have each once. After the statement and before the commit, the caller
// must call check: it returns an error if a device in written does not exist, and a sampledError if a device with rows
// in whole may have samples.
func queueHeartbeats(
	batch *pgx.Batch, seen []roomsensor.DeviceHeartbeat, written []feed.DeviceBuckets,
	whole []roomsensor.DeviceMeasurement,
) (check func() error) {
	if len(seen)+len(written) == 0 {
		return func() error { return nil }
	}
	var updated map[uuid.UUID]bool // whether the device may have samples
	queued := batch.Queue(db.DeviceHeartbeatUpdate, pg.Positional(heartbeatParams(seen, written))...)
	queued.Query(func(rows pgx.Rows) error {
		updated = make(map[uuid.UUID]bool, len(seen)+len(written))
		var row db.DeviceHeartbeatUpdateRow
		_, err := pgx.ForEachRow(rows, []any{&row.DeviceID, &row.Sampled}, func() error {
			updated[row.DeviceID] = row.Sampled
			return nil
		})
		return err //nolint:wrapcheck // The caller of the batch wraps it.
	})
	return func() error {
		for i := range written {
			if _, ok := updated[written[i].ID]; !ok { // Its readings must not be stored either, see DeleteDevice.
				return pg.Overloaded(errors.New("a device was deleted after its unit was resolved"))
			}
		}
		maps.DeleteFunc(updated, func(id uuid.UUID, sampled bool) bool { return !sampled || !hasDevice(whole, id) })
		if len(updated) > 0 {
			return &sampledError{updated}
		}
		return nil
	}
}

// heartbeatParams merges two lists that are sorted by device.
func heartbeatParams(
	seen []roomsensor.DeviceHeartbeat, written []feed.DeviceBuckets,
) (p db.DeviceHeartbeatUpdateParams) {
	for len(seen)+len(written) > 0 {
		var order int // which device comes first
		switch {
		case len(seen) == 0:
			order = 1
		case len(written) == 0:
			order = -1
		default:
			order = bytes.Compare(seen[0].DeviceID[:], written[0].ID[:])
		}
		var none roomsensor.DeviceHeartbeat
		var rows feed.DeviceBuckets
		heartbeat := &none
		if order <= 0 {
			heartbeat, seen = &seen[0], seen[1:]
		}
		if order >= 0 {
			rows, written = written[0], written[1:]
			none.DeviceID = rows.ID
			if p.WindowFrom.IsZero() || rows.Last.Before(p.WindowFrom) {
				p.WindowFrom = rows.Last
			}
			if rows.Last.After(p.WindowTo) {
				p.WindowTo = rows.Last
			}
		}
		p = appendHeartbeat(p, heartbeat)
		p.OldestAt, p.NewestAt = append(p.OldestAt, rows.First), append(p.NewestAt, rows.Last)
	}
	return p
}

// These stand for null in the arrays of DeviceHeartbeatUpdate. The zero time does, too.
const (
	noRSSI = math.MinInt32
	noBars = -1
)

func appendHeartbeat(
	p db.DeviceHeartbeatUpdateParams, d *roomsensor.DeviceHeartbeat,
) db.DeviceHeartbeatUpdateParams {
	p.DeviceIds = append(p.DeviceIds, d.DeviceID)
	p.SeenAt = append(p.SeenAt, d.LastSeenAt)

	at, rssi, bars := time.Time{}, int32(noRSSI), int16(noBars)
	if d.Signal != nil {
		at = d.SignalAt
		if d.Signal.RSSI != nil {
			rssi = *d.Signal.RSSI
		}
		if d.Signal.Bars != nil {
			bars = *d.Signal.Bars
		}
	}
	p.SignalAt, p.RssiDbm, p.SignalBars = append(p.SignalAt, at), append(p.RssiDbm, rssi), append(p.SignalBars, bars)

	at, firmware := time.Time{}, ""
	if d.Firmware != nil {
		at, firmware = d.FirmwareAt, *d.Firmware
	}
	p.FirmwareAt, p.Firmware = append(p.FirmwareAt, at), append(p.Firmware, firmware)
	return p
}
