// Package fleet generates the devices and readings of the benchmarks. The same seed gives the same readings, and any
// part can be generated without the rest.
package fleet

import (
	"crypto/md5" //nolint:gosec // It derives device ids in Go and in SQL; it protects nothing.
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/store/pg"
)

// Fleet is a fleet of devices with a history that ends at an instant.
type Fleet struct {
	Seed    uint64    `json:"seed"`
	Devices int       `json:"devices"`
	Days    int       `json:"days"`   // of history
	Deep    int       `json:"deep"`   // devices that have the whole history
	Recent  int       `json:"recent"` // days of history that every device has
	Until   time.Time `json:"until"`  // end of the history, a bucket boundary
	Gaps    int       `json:"gaps"`   // one in so many readings lacks a metric; 0 means none
}

// DeviceID returns the id of the i-th device. SQL can derive it too, see DeviceIDSQL.
func (f *Fleet) DeviceID(i int) uuid.UUID {
	return md5.Sum(fmt.Appendf(nil, "%d device %d", f.Seed, i)) //nolint:gosec // See the import.
}

// DeviceIDSQL returns an SQL expression for DeviceID; i is an expression for the number.
func (f *Fleet) DeviceIDSQL(i string) string {
	return fmt.Sprintf("(md5('%d device ' || %s)::uuid)", f.Seed, i)
}

// HardwareID returns the unit of the i-th device.
func (f *Fleet) HardwareID(i int) string { return fmt.Sprintf("dev:9%014d", i) }

// HardwareIDSQL returns an SQL expression for HardwareID; i is an expression for the number.
func (f *Fleet) HardwareIDSQL(i string) string {
	return fmt.Sprintf("('dev:9' || lpad((%s)::text, 14, '0'))", i)
}

// Name returns the display name of the i-th device.
func (f *Fleet) Name(i int) string { return fmt.Sprintf("Room %04d", i) }

// From returns the start of the history of the deep devices.
func (f *Fleet) From() time.Time { return f.Until.AddDate(0, 0, -f.Days) }

// RecentFrom returns the start of the history of the other devices.
func (f *Fleet) RecentFrom() time.Time { return f.Until.AddDate(0, 0, -min(f.Recent, f.Days)) }

// Rows returns the number of readings of a part of the history.
func (f *Fleet) Rows(from, to time.Time) int {
	rows := 0
	for at := from; at.Before(to); at = at.Add(roomsensor.BucketLength) {
		rows += f.Present(at)
	}
	return rows
}

// Present returns the number of devices with a reading in a bucket. They are the first ones.
func (f *Fleet) Present(bucket time.Time) int {
	if bucket.Before(f.RecentFrom()) {
		return f.Deep
	}
	return f.Devices
}

// Reading returns the measurement of the i-th device in a bucket.
func (f *Fleet) Reading(i int, bucket time.Time) roomsensor.Measurement {
	source := rand.NewPCG(f.Seed, uint64(i)<<40^uint64(bucket.Unix())) //nolint:gosec // A seed may overflow.
	below := func(n uint64) uint64 { return source.Uint64() % n }
	// Devices measure at different seconds.
	m := roomsensor.Measurement{MeasuredAt: bucket.Add(time.Duration(i%299) * time.Second)}
	m.Values.Set(roomsensor.CO2, float32(400+below(900)))
	m.Values.Set(roomsensor.Temp, float32(1800+below(800))/100)
	m.Values.Set(roomsensor.Humidity, float32(2000+below(4000))/100)
	m.Values.Set(roomsensor.Lux, float32(below(9000))/10)
	if f.Gaps == 0 || below(uint64(f.Gaps)) != 0 { //nolint:gosec // Not negative.
		m.Values.Set(roomsensor.Sound, float32(300+below(400))/10)
	}
	return m
}

// Upload returns an upload of the i-th device with its readings of a window, in the wire format.
func (f *Fleet) Upload(i int, window roomsensor.Window) []byte {
	u := simulate.Upload{
		HardwareID: f.HardwareID(i), SentAt: window.To, Firmware: "2.4.1",
		Signal: &simulate.Signal{RSSI: -87, Bars: 2},
	}
	for at := window.From; at.Before(window.To); at = at.Add(roomsensor.BucketLength) {
		u.Readings = append(u.Readings, f.Reading(i, at))
	}
	return u.AppendJSON(nil)
}

// Uploads returns an upload of every device for each part of a window, part by part.
func (f *Fleet) Uploads(window roomsensor.Window, part time.Duration) (list [][]byte) {
	for from := window.From; from.Before(window.To); from = from.Add(part) {
		for i := range f.Devices {
			list = append(list, f.Upload(i, roomsensor.Window{From: from, To: from.Add(part)}))
		}
	}
	return list
}

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
	rows := pg.NewCopyEncoder(0)
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
