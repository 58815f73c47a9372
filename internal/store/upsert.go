package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// copyRows is from where COPY into a temporary table is cheaper than arrays, and
// by more than its two round trips: at 8,000 rows, which a worker with a backlog
// has at once, it takes an eighth off the processor's time, and a sixth for rows
// that are there already (bench/NOTES.md).
const copyRows = 2_000

// runRows is from where a device has so many rows, on average, that a look at
// whether any of them is there costs less than the same look for each row.
const runRows = 32

// takenTries is how often, the first time included, a transaction is tried that
// copies rows straight into the table, where another worker stores one of them
// meanwhile. The next try finds it.
const takenTries = 3

// inWrite runs a function in a transaction on a connection that rows can be
// copied through; again, where another worker was faster to store one of them.
func (s *Store) inWrite(ctx context.Context, run func(pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err //nolint:wrapcheck // Callers wrap it.
	}
	defer conn.Release()
	if err := s.makeIncoming(ctx, conn.Conn()); err != nil {
		return err
	}
	for range takenTries {
		err = pgx.BeginFunc(ctx, conn, run)
		if !violates(err, stateUnique, "") {
			break
		}
	}
	return err //nolint:wrapcheck // Likewise.
}

// incomingMade marks a connection that has the table reading_incoming.
const incomingMade = "reading_incoming"

// makeIncoming makes the table once a connection, and outside of a transaction,
// as it has to outlive one that is rolled back.
func (s *Store) makeIncoming(ctx context.Context, conn *pgx.Conn) error {
	marks := conn.PgConn().CustomData()
	if marks[incomingMade] != nil {
		return nil
	}
	if err := s.queries.ReadingIncomingCreate(ctx, conn); err != nil {
		return err
	}
	marks[incomingMade] = true
	return nil
}

// upsert writes rows that are sorted by key, each key once, and tells how many
// changed. Its error is stateUnique where it took rows for new and another
// worker stored one of them meanwhile.
func (s *Store) upsert(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) (int64, error) {
	if len(rows) < copyRows {
		return s.queries.ReadingUpsert(ctx, tx, upsertParams(rows))
	}
	fresh, err := s.areNew(ctx, tx, rows)
	if err != nil {
		return 0, err
	}
	into := db.ReadingIncomingCopy
	if fresh {
		into = db.ReadingCopy
	}
	copied, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(binaryRows(rows)), into)
	if err != nil || fresh {
		return copied.RowsAffected(), err
	}
	return s.queries.ReadingUpsert(ctx, tx, upsertParams(nil))
}

// areNew reports whether nothing is stored between the first and the last row of
// each device. So it is, as a rule, when a device that was away delivers days at
// once: those rows need no look for what each of them meets. Few rows a device
// are not looked at, and said to be met.
func (s *Store) areNew(ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement) (bool, error) {
	p := db.ReadingAnyParams{WindowFrom: rows[0].Bucket(), WindowTo: rows[0].Bucket()}
	for i := range rows {
		id, bucket := rows[i].DeviceID, rows[i].Bucket()
		if last := len(p.DeviceIds) - 1; last >= 0 && p.DeviceIds[last] == id {
			p.LastAt[last] = bucket
		} else {
			p.DeviceIds, p.FirstAt, p.LastAt = append(p.DeviceIds, id), append(p.FirstAt, bucket), append(p.LastAt, bucket)
			if len(p.DeviceIds)*runRows > len(rows) {
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
	met, err := s.queries.ReadingAny(ctx, tx, p)
	return err == nil && !met, err
}

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

// What PostgreSQL's binary COPY begins and ends with: a signature, flags and
// the length of an extension, both 0; and a row of -1 columns.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

const (
	// copyColumns are those of ReadingIncomingCopy: the key, the time, the metrics.
	copyColumns = 3 + uint16(roomsensor.MetricCount)
	// copyRowBytes is the most that a row takes: each column has its length
	// before it.
	copyRowBytes = 2 + (4 + 16) + 2*(4+8) + roomsensor.MetricCount*(4+4)
	copyNull     = math.MaxUint32 // a length of -1
)

// binaryRows is what ReadingIncomingCopy reads.
func binaryRows(rows []roomsensor.DeviceMeasurement) []byte {
	b := make([]byte, 0, len(copyHeader)+len(rows)*copyRowBytes+len(copyTrailer))
	b = append(b, copyHeader...)
	for i := range rows {
		b = appendRow(b, &rows[i])
	}
	return append(b, copyTrailer...)
}

func appendRow(b []byte, row *roomsensor.DeviceMeasurement) []byte {
	b = binary.BigEndian.AppendUint16(b, copyColumns)
	b = binary.BigEndian.AppendUint32(b, uint32(len(row.DeviceID)))
	b = append(b, row.DeviceID[:]...)
	b = appendTime(b, row.Bucket())
	b = appendTime(b, row.MeasuredAt)
	for _, m := range roomsensor.Metrics {
		x, ok := row.Values.Get(m)
		if !ok {
			b = binary.BigEndian.AppendUint32(b, copyNull)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// appendTime writes what rawTime reads.
func appendTime(b []byte, at time.Time) []byte {
	micros := at.UnixMicro() - postgresEpoch
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(micros)) //nolint:gosec // Two's complement, as it is read.
}
