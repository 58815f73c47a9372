package simulate

import (
	"errors"
	"fmt"
	"iter"
	"math/big"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// MaxDevices is the size of the largest fleet. A fleet needs about 2 KB of memory per device.
const MaxDevices = 1_000_000

// Fleet is a number of devices whose hardware ids count up from the first. Equal fleets have identical readings.
type Fleet struct {
	Seed            uint64
	Devices         int
	FirstHardwareID string // dev: and digits; leading zeros are kept
}

// Validate checks the number of devices and the hardware ids. Its error is a sentence for the user.
func (f Fleet) Validate() error {
	if f.Devices < 1 || f.Devices > MaxDevices {
		return fmt.Errorf("the number of devices must be 1 to %d", MaxDevices)
	}
	if !roomsensor.IsHardwareID(f.FirstHardwareID) {
		return errors.New("the first hardware id must be dev: and 1 to 20 digits, for example dev:900000000000001")
	}
	if last := f.HardwareID(f.Devices - 1); !roomsensor.IsHardwareID(last) {
		return fmt.Errorf("the last hardware id would be %s, but at most 20 digits are allowed: start lower", last)
	}
	return nil
}

// HardwareID returns the hardware id of unit i, counted from 0.
func (f Fleet) HardwareID(i int) string {
	digits := strings.TrimPrefix(f.FirstHardwareID, "dev:")
	first, _ := new(big.Int).SetString(digits, 10) // 20 digits may be more than 64 bits.
	return fmt.Sprintf("dev:%0*s", len(digits), first.Add(first, big.NewInt(int64(i))))
}

// Device returns device i, counted from 0.
func (f Fleet) Device(i int) *Device {
	kind := Kinds[i%len(Kinds)]
	seed := mix(f.Seed ^ mix(uint64(i))) //nolint:gosec // i is not negative.
	hardwareID := f.HardwareID(i)
	return &Device{
		HardwareID: hardwareID,
		Kind:       kind,
		fleet:      f.Seed,
		seed:       seed,
		room:       newRoom(kind, newRNG(seed, streamRoom)),
		unit:       newUnit(f.Seed, hardwareID),
	}
}

// Device is a sensor in a room.
type Device struct {
	HardwareID string
	Kind       Kind

	fleet, seed uint64
	room        room
	unit        unit
}

// Replaced returns a device in the same room with another unit.
func (d *Device) Replaced(hardwareID string) *Device {
	other := *d
	other.HardwareID = hardwareID
	other.unit = newUnit(d.fleet, hardwareID)
	return &other
}

// sealedAir is the share of the usual air changes in a sealed room.
const sealedAir = 0.4

// Sealed returns the device in the same room, but with closed windows and a blocked vent. With people in it, the air
// becomes bad.
func (d *Device) Sealed() *Device {
	other := *d
	other.room.sealed = true
	other.room.idleAir *= sealedAir
	other.room.busyAir *= sealedAir
	return &other
}

// Measurements yields the measurements in [from, to), oldest first. A measurement does not depend on the window. It
// does not allocate per measurement.
func (d *Device) Measurements(from, to time.Time) iter.Seq[roomsensor.Measurement] {
	return func(yield func(roomsensor.Measurement) bool) {
		s := newSampler(d, from)
		for s.bucket.Before(to) {
			m, ok := s.next()
			if ok && !m.MeasuredAt.Before(from) && m.MeasuredAt.Before(to) && !yield(m) {
				return
			}
		}
	}
}

const (
	daySeconds = 24 * 60 * 60
	// blockDays is the length of a block of days. The state of a room is reset at the start of each block, so that no
	// reading depends on where the simulation began. The step between two blocks is smaller than the sensors' noise.
	blockDays = 7
	// lostReadings is the share of measurements that fail at random.
	lostReadings = 0.002
)

// sampler simulates the slots of a device in order.
type sampler struct {
	device *Device
	rng    *rng  // for weather and people
	noise  *rng  // for the sensor
	day    int64 // since 1970, in the time zone of the rooms
	slot   int
	bucket time.Time // start of the next slot, UTC

	schedule schedule
	weather  weather
	air      air
	fault    fault

	from time.Time
	held roomsensor.Measurement // measured, but not returned by take yet; zero at first
}

// newSampler returns a sampler whose next slot is the bucket that contains from.
func newSampler(d *Device, from time.Time) *sampler {
	s := &sampler{device: d, rng: newRNG(), noise: newRNG(), from: from}
	day := (from.Unix() + clockAhead) / daySeconds
	s.startBlock(day - day%blockDays)
	for first := roomsensor.BucketOf(from); s.bucket.Before(first); {
		s.next()
	}
	return s
}

// startBlock simulates the day before a block, so that the state of the room no longer depends on its initial value.
func (s *sampler) startBlock(day int64) {
	s.startDay(day - 1)
	s.air = initialAir(&s.device.room, &s.weather)
	for slot := range slotsOfDay {
		s.air.step(&s.device.room, &s.schedule, &s.weather, slot)
	}
	s.startDay(day)
}

func (s *sampler) startDay(day int64) {
	place := uint64(day) //nolint:gosec // A seed may wrap.
	s.day, s.slot = day, 0
	s.bucket = time.Unix(day*daySeconds-clockAhead, 0).UTC()
	s.weather = weatherOn(s.rng, s.device.fleet, day)
	s.rng.reset(s.device.seed, streamPeople, place)
	s.schedule.fill(day, s.rng, &s.device.room)
	s.noise.reset(s.device.unit.seed, streamNoise, place)
	s.fault = fault{}
}

// next simulates one slot and measures in it. ok is false if the device measures nothing.
func (s *sampler) next() (m roomsensor.Measurement, ok bool) {
	u := &s.device.unit
	s.air.step(&s.device.room, &s.schedule, &s.weather, s.slot)
	jitter := time.Duration(s.noise.IntN(5)-2) * time.Second
	lost := s.noise.chance(lostReadings)
	m = roomsensor.Measurement{
		MeasuredAt: s.bucket.Add(u.phase + jitter),
		Values:     u.read(&s.air, &s.fault, s.noise),
	}
	ok = !lost && !s.schedule.dark[s.slot]
	s.advance()
	return m, ok
}

func (s *sampler) advance() {
	s.slot++
	s.bucket = s.bucket.Add(roomsensor.BucketLength)
	switch {
	case s.slot < slotsOfDay:
	case (s.day+1)%blockDays == 0:
		s.startBlock(s.day + 1)
	default:
		s.startDay(s.day + 1)
	}
}

// take appends the measurements before to that it has not returned yet to dst.
func (s *sampler) take(dst []roomsensor.Measurement, to time.Time) []roomsensor.Measurement {
	for {
		if !s.held.MeasuredAt.Before(to) {
			return dst
		}
		if !s.held.MeasuredAt.Before(s.from) {
			dst = append(dst, s.held)
		}
		s.held = s.measure()
	}
}

// measure returns the next measurement.
func (s *sampler) measure() roomsensor.Measurement {
	for {
		if m, ok := s.next(); ok {
			return m
		}
	}
}
