package fleet

import (
	"io"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// CopySQL is the COPY statement for the output of WriteBinary.
const CopySQL = "COPY readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db," +
	" measured_at, ingested_at) FROM STDIN BINARY"

// WriteBinary writes a part of the history in PostgreSQL's binary COPY format, in the order of arrival: bucket by
// bucket, and all devices in each bucket.
func (f *Fleet) WriteBinary(w io.Writer, from, to time.Time) error {
	const columns = 4 + roomsensor.MetricCount // Device, bucket, time of the measurement, time of the ingest.
	ids := make([]uuid.UUID, f.Devices)
	for i := range ids {
		ids[i] = f.DeviceID(i)
	}
	rows := store.NewCopyEncoder(0)
	for at := from; at.Before(to); at = at.Add(roomsensor.BucketLength) {
		for i := range f.Present(at) {
			reading := f.Reading(i, at)
			rows.Row(columns)
			rows.UUID(ids[i])
			rows.Time(at)
			rows.Values(&reading.Values)
			rows.Time(reading.MeasuredAt)
			rows.Time(reading.MeasuredAt.Add(uploadEvery))
		}
		if _, err := w.Write(rows.Flush()); err != nil {
			return err //nolint:wrapcheck // The other end of the pipe reports the cause.
		}
	}
	_, err := w.Write(rows.End())
	return err //nolint:wrapcheck // As above.
}

// uploadEvery is the time from a measurement until it is stored.
const uploadEvery = 10 * time.Minute
