package fleet

import (
	"crypto/md5" //nolint:gosec // It derives device ids in Go and in SQL; it protects nothing.
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
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
	rng := newRNG(f.Seed, uint64(i)<<40^uint64(bucket.Unix())) //nolint:gosec // A seed may overflow.
	// Devices measure at different seconds.
	m := roomsensor.Measurement{MeasuredAt: bucket.Add(time.Duration(i%299) * time.Second)}
	m.Values.Set(roomsensor.CO2, float32(400+rng.below(900)))
	m.Values.Set(roomsensor.Temp, hundredths(1800+rng.below(800)))
	m.Values.Set(roomsensor.Humidity, hundredths(2000+rng.below(4000)))
	m.Values.Set(roomsensor.Lux, tenths(rng.below(9000)))
	if f.Gaps == 0 || rng.below(f.Gaps) != 0 {
		m.Values.Set(roomsensor.Sound, tenths(300+rng.below(400)))
	}
	return m
}

func tenths(n int) float32 { return float32(n) / 10 }

func hundredths(n int) float32 { return float32(n) / 100 }

// rng is SplitMix64, which takes nanoseconds per number and has one word of state.
type rng uint64

func newRNG(seed, of uint64) *rng {
	r := rng(seed*0x9E3779B97F4A7C15 ^ of)
	return &r
}

// below returns a number from 0 to n-1.
func (r *rng) below(n int) int {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return int((z ^ z>>31) % uint64(n)) //nolint:gosec // n is small and positive.
}
