package fleet

import (
	"encoding/binary"
	"io"
	"math"
	"time"

	"roomsensor/internal/roomsensor"
)

// CopySQL is the statement that takes what Binary writes.
const CopySQL = "COPY readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db," +
	" measured_at, ingested_at) FROM STDIN BINARY"

// Binary writes a part of the history in PostgreSQL's binary form of COPY, in the order in which readings arrive:
// bucket by bucket, in each of them all devices.
func (f *Fleet) Binary(w io.Writer, from, to time.Time) error {
	ids := make([][16]byte, f.Devices)
	for i := range ids {
		ids[i] = f.DeviceID(i)
	}
	buffer := append([]byte("PGCOPY\n\xff\r\n\x00"), 0, 0, 0, 0, 0, 0, 0, 0)
	for at := from; at.Before(to); at = at.Add(roomsensor.BucketLength) {
		for i := range f.Present(at) {
			reading := f.Reading(i, at)
			buffer = appendRow(buffer, ids[i], at, &reading)
		}
		if _, err := w.Write(buffer); err != nil {
			return err //nolint:wrapcheck // Of a pipe, whose other end says what happened.
		}
		buffer = buffer[:0]
	}
	_, err := w.Write([]byte{0xff, 0xff})
	return err //nolint:wrapcheck // As above.
}

const columns = 9

func appendRow(b []byte, id [16]byte, bucket time.Time, m *roomsensor.Measurement) []byte {
	b = binary.BigEndian.AppendUint16(b, columns)
	b = append(binary.BigEndian.AppendUint32(b, 16), id[:]...)
	b = appendTime(b, bucket)
	for _, metric := range roomsensor.Metrics {
		x, ok := m.Values.Get(metric)
		if !ok {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 4)
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(x))
	}
	b = appendTime(b, m.MeasuredAt)
	return appendTime(b, m.MeasuredAt.Add(uploadEvery))
}

// uploadEvery is how long after its measurement a reading was stored.
const uploadEvery = 10 * time.Minute

// epoch is PostgreSQL's, in microseconds of Unix time.
const epoch = 946_684_800_000_000

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMicro()-epoch)) //nolint:gosec // Two's complement is the form.
}
