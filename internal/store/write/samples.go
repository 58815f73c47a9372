package write

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// writeSamples stores the samples of a batch, computes the readings of their buckets, and returns how many of these
// changed. A measurement with the rule SampleIfAny in a bucket without samples is merged into the reading.
//
// Two transactions that add samples to the same bucket must not compute its mean at the same time: each would miss the
// samples of the other. So this one first locks the states of all devices of the batch, in the order of their ids. The
// readings of devices without samples are locked before that, and those of the others after it, so that transactions do
// not wait for each other in a circle.
func (s *Store) writeSamples(ctx context.Context, tx pgx.Tx, b *roomsensor.Batch) (changed int64, err error) {
	if err := s.Queries.DeviceStateLock(ctx, tx, statesOf(b)); err != nil {
		return 0, err
	}
	var samples, others []roomsensor.DeviceMeasurement
	for i := range b.Samples {
		if b.Samples[i].Rule == roomsensor.Sample {
			samples = append(samples, b.Samples[i])
		} else {
			others = append(others, b.Samples[i])
		}
	}
	if err := s.addSamples(ctx, tx, samples); err != nil {
		return 0, err
	}
	more, rest, err := s.divide(ctx, tx, others)
	if err == nil {
		err = s.addSamples(ctx, tx, more)
	}
	if err == nil && len(rest) > 0 {
		changed, err = s.Queries.ReadingUpsert(ctx, tx, upsertParams(rest))
	}
	if samples = withSamples(samples, more); err != nil || len(samples) == 0 {
		return changed, err
	}
	means, err := s.Queries.ReadingUpsertMean(ctx, tx, db.ReadingUpsertMeanParams(keysOf(samples)))
	return changed + means, err
}

// addSamples stores samples, and makes samples of the readings that their buckets have from before the first sample.
func (s *Store) addSamples(ctx context.Context, tx pgx.Tx, samples []roomsensor.DeviceMeasurement) error {
	if len(samples) == 0 {
		return nil
	}
	if err := s.Queries.SampleAdopt(ctx, tx, db.SampleAdoptParams(keysOf(samples))); err != nil {
		return err
	}
	p := upsertParams(samples)
	return s.Queries.SampleUpsert(ctx, tx, db.SampleUpsertParams{
		DeviceIds: p.DeviceIds, MeasuredAt: p.MeasuredAt, ValidMask: p.ValidMask, Co2Ppm: p.Co2Ppm, TempC: p.TempC,
		HumidityPct: p.HumidityPct, Lux: p.Lux, SplDb: p.SplDb,
	})
}

// divide divides measurements into those whose buckets have samples, and the others, merged by bucket.
func (s *Store) divide(
	ctx context.Context, tx pgx.Tx, rows []roomsensor.DeviceMeasurement,
) (samples, merged []roomsensor.DeviceMeasurement, err error) {
	if len(rows) == 0 {
		return nil, nil, nil
	}
	found, err := s.Queries.SampleBucketList(ctx, tx, db.SampleBucketListParams(keysOf(rows)))
	if err != nil {
		return nil, nil, err
	}
	type key struct {
		id     uuid.UUID
		bucket int64
	}
	has := make(map[key]bool, len(found))
	for i := range found {
		has[key{found[i].DeviceID, found[i].BucketAt.Unix()}] = true
	}
	for _, row := range rows {
		n := len(merged)
		switch {
		case has[key{row.DeviceID, row.Bucket().Unix()}]:
			samples = append(samples, row)
		case n > 0 && merged[n-1].DeviceID == row.DeviceID && merged[n-1].Bucket().Equal(row.Bucket()):
			merged[n-1].Measurement = roomsensor.Merge(merged[n-1].Measurement, row.Measurement)
		default:
			merged = append(merged, row)
		}
	}
	return samples, merged, nil
}

// bucketKeys are distinct buckets of devices, sorted, and a window that encloses them.
type bucketKeys struct {
	DeviceIds  []uuid.UUID //nolint:revive // As in the parameters of queries.
	BucketAt   []time.Time
	WindowFrom time.Time
	WindowTo   time.Time
}

// keysOf returns the buckets of measurements, which are sorted by device and time.
func keysOf(rows []roomsensor.DeviceMeasurement) (k bucketKeys) {
	for i := range rows {
		id, bucket := rows[i].DeviceID, rows[i].Bucket()
		if n := len(k.DeviceIds); n > 0 && k.DeviceIds[n-1] == id && k.BucketAt[n-1].Equal(bucket) {
			continue
		}
		k.DeviceIds, k.BucketAt = append(k.DeviceIds, id), append(k.BucketAt, bucket)
		if k.WindowFrom.IsZero() || bucket.Before(k.WindowFrom) {
			k.WindowFrom = bucket
		}
		if end := bucket.Add(roomsensor.BucketLength); end.After(k.WindowTo) {
			k.WindowTo = end
		}
	}
	return k
}

// statesOf returns the devices of a batch.
func statesOf(b *roomsensor.Batch) (ids []uuid.UUID) {
	for i := range b.Seen {
		ids = append(ids, b.Seen[i].DeviceID)
	}
	for _, rows := range [][]roomsensor.DeviceMeasurement{b.Rows, b.Samples} {
		for i := range rows {
			if i == 0 || rows[i-1].DeviceID != rows[i].DeviceID {
				ids = append(ids, rows[i].DeviceID)
			}
		}
	}
	return ids
}

// withSamples returns two lists as one that is sorted by device and time; a bucket may be there several times.
func withSamples(rows, samples []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement {
	all := slices.Concat(rows, samples)
	slices.SortFunc(all, roomsensor.CompareMeasurements)
	return all
}

// hasDevice reports whether there are rows of a device. They are sorted by device.
func hasDevice(rows []roomsensor.DeviceMeasurement, id uuid.UUID) bool {
	_, found := slices.BinarySearchFunc(rows, id, func(row roomsensor.DeviceMeasurement, id uuid.UUID) int {
		return bytes.Compare(row.DeviceID[:], id[:])
	})
	return found
}

// sampledError means that devices got another sampling after a worker read it: their measurements must not replace the
// mean of a bucket that has samples by now.
type sampledError struct{ devices map[uuid.UUID]bool }

func (*sampledError) Error() string { return "the sampling of a device was changed" }

// moveTo moves the measurements of the devices to the samples of a batch, with the rule SampleIfAny.
func (e *sampledError) moveTo(b *roomsensor.Batch) {
	moved := slices.Clone(b.Samples)
	b.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(row roomsensor.DeviceMeasurement) bool {
		if !e.devices[row.DeviceID] {
			return false
		}
		row.Rule = roomsensor.SampleIfAny
		moved = append(moved, row)
		return true
	})
	slices.SortFunc(moved, roomsensor.CompareMeasurements)
	b.Samples = moved
}
