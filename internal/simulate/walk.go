package simulate

import (
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	daySeconds = 24 * 60 * 60
	// blockDays is how long the state of a room goes on unbroken. It starts
	// anew in each block, so that no reading depends on where a walk began;
	// the step between two blocks is smaller than the sensors' noise.
	blockDays = 7
	// lostReadings is the share of measurements that fail for no reason.
	lostReadings = 0.002
)

// walk goes through the slots of a device in order.
type walk struct {
	device *Device
	dice   *dice // of what happens: weather, people
	noise  *dice // of the sensor
	day    int64 // since 1970, by the rooms' clock
	slot   int
	bucket time.Time // start of the next slot, UTC

	plan    plan
	weather weather
	air     air
	fault   fault

	from time.Time
	held roomsensor.Measurement // measured, but not taken yet; zero at first
}

// newWalk stands before the bucket that contains an instant.
func newWalk(d *Device, from time.Time) *walk {
	w := &walk{device: d, dice: newDice(), noise: newDice(), from: from}
	day := (from.Unix() + clockAhead) / daySeconds
	w.startBlock(day - day%blockDays)
	for first := roomsensor.BucketOf(from); w.bucket.Before(first); {
		w.next()
	}
	return w
}

// startBlock lets a room settle through the day before a block.
func (w *walk) startBlock(day int64) {
	w.startDay(day - 1)
	w.air = startingAir(&w.device.room, &w.weather)
	for slot := range slotsOfDay {
		w.air.live(&w.device.room, &w.plan, &w.weather, slot)
	}
	w.startDay(day)
}

func (w *walk) startDay(day int64) {
	place := uint64(day) //nolint:gosec // A day's number only names a place.
	w.day, w.slot = day, 0
	w.bucket = time.Unix(day*daySeconds-clockAhead, 0).UTC()
	w.weather = weatherOn(w.dice, w.device.fleet, day)
	w.dice.reset(w.device.seed, streamPeople, place)
	w.plan.fill(day, w.dice, &w.device.room)
	w.noise.reset(w.device.unit.seed, streamNoise, place)
	w.fault = fault{}
}

// next lives through one slot and measures in it; ok is false where the device
// measured nothing.
func (w *walk) next() (m roomsensor.Measurement, ok bool) {
	u := &w.device.unit
	w.air.live(&w.device.room, &w.plan, &w.weather, w.slot)
	jitter := time.Duration(w.noise.IntN(5)-2) * time.Second
	lost := w.noise.chance(lostReadings)
	m = roomsensor.Measurement{
		MeasuredAt: w.bucket.Add(u.phase + jitter),
		Values:     u.read(&w.air, &w.fault, w.noise),
	}
	ok = !lost && !w.plan.dark[w.slot]
	w.advance()
	return m, ok
}

func (w *walk) advance() {
	w.slot++
	w.bucket = w.bucket.Add(roomsensor.BucketLength)
	switch {
	case w.slot < slotsOfDay:
	case (w.day+1)%blockDays == 0:
		w.startBlock(w.day + 1)
	default:
		w.startDay(w.day + 1)
	}
}

// take appends what was measured before an instant to dst, from the start of
// the walk or the last instant that was asked for.
func (w *walk) take(dst []roomsensor.Measurement, to time.Time) []roomsensor.Measurement {
	for {
		if !w.held.MeasuredAt.Before(to) {
			return dst
		}
		if !w.held.MeasuredAt.Before(w.from) {
			dst = append(dst, w.held)
		}
		w.held = w.measure()
	}
}

// measure is the device's next measurement.
func (w *walk) measure() roomsensor.Measurement {
	for {
		if m, ok := w.next(); ok {
			return m
		}
	}
}
