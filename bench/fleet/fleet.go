// Package fleet makes the devices and readings of the benchmarks. The same seed gives the same ones, and any part of
// them can be made without the rest.
package fleet

import (
	"crypto/md5" //nolint:gosec // It names devices, in Go and in SQL alike; nothing is kept secret by it.
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
	Deep    int       `json:"deep"`   // devices that have all of it
	Recent  int       `json:"recent"` // days that every device has
	Until   time.Time `json:"until"`  // a bucket boundary, at which the history ends
	Gaps    int       `json:"gaps"`   // one in so many readings lacks a metric; 0 for none
}

// DeviceID is the id of the i-th device, which SQL can make from i as well: see DeviceIDSQL.
func (f *Fleet) DeviceID(i int) uuid.UUID {
	return md5.Sum(fmt.Appendf(nil, "%d device %d", f.Seed, i)) //nolint:gosec // As above.
}

// DeviceIDSQL is DeviceID as an expression over one that gives i.
func (f *Fleet) DeviceIDSQL(i string) string {
	return fmt.Sprintf("(md5('%d device ' || %s)::uuid)", f.Seed, i)
}

// HardwareID is the unit in the i-th device.
func (f *Fleet) HardwareID(i int) string { return fmt.Sprintf("dev:9%014d", i) }

// Name is the display name of the i-th device.
func (f *Fleet) Name(i int) string { return fmt.Sprintf("Room %04d", i) }

// From is where the history of the deep devices begins.
func (f *Fleet) From() time.Time { return f.Until.AddDate(0, 0, -f.Days) }

// RecentFrom is where the history of the others begins.
func (f *Fleet) RecentFrom() time.Time { return f.Until.AddDate(0, 0, -min(f.Recent, f.Days)) }

// Rows is how many readings a part of the history has.
func (f *Fleet) Rows(from, to time.Time) int {
	rows := 0
	for at := from; at.Before(to); at = at.Add(roomsensor.BucketLength) {
		rows += f.Present(at)
	}
	return rows
}

// Present is how many devices have a reading of a bucket: the first ones.
func (f *Fleet) Present(bucket time.Time) int {
	if bucket.Before(f.RecentFrom()) {
		return f.Deep
	}
	return f.Devices
}

// Reading is what the i-th device measured in a bucket.
func (f *Fleet) Reading(i int, bucket time.Time) roomsensor.Measurement {
	dice := draw(f.Seed, uint64(i)<<40^uint64(bucket.Unix()))                               //nolint:gosec // Mixed anyway.
	m := roomsensor.Measurement{MeasuredAt: bucket.Add(time.Duration(i%299) * time.Second)} // Each in its own second.
	m.Values.Set(roomsensor.CO2, float32(400+dice.below(900)))
	m.Values.Set(roomsensor.Temp, hundredths(1800+dice.below(800)))
	m.Values.Set(roomsensor.Humidity, hundredths(2000+dice.below(4000)))
	m.Values.Set(roomsensor.Lux, tenths(dice.below(9000)))
	if f.Gaps == 0 || dice.below(f.Gaps) != 0 {
		m.Values.Set(roomsensor.Sound, tenths(300+dice.below(400)))
	}
	return m
}

func tenths(n int) float32 { return float32(n) / 10 }

func hundredths(n int) float32 { return float32(n) / 100 }

// dice is SplitMix64: a number costs some nanoseconds, and its state is one word.
type dice uint64

func draw(seed, of uint64) *dice {
	d := dice(seed*0x9E3779B97F4A7C15 ^ of)
	return &d
}

// below is a number from 0 to n-1.
func (d *dice) below(n int) int {
	*d += 0x9E3779B97F4A7C15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return int((z ^ z>>31) % uint64(n)) //nolint:gosec // n is small and positive.
}
