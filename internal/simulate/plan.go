package simulate

import (
	"iter"
	"time"

	"roomsensor/internal/roomsensor"
)

// Mode is a way in which measurements become uploads.
type Mode string

// The modes. All but Live send what was measured in a window of the past.
const (
	// Live sends the newest measurement of each device, in turn, for ever.
	Live Mode = "live"
	// Backfill sends everything in order, a day of one device an upload.
	Backfill Mode = "backfill"
	// Burst is a fleet that was offline all the time and comes back at once:
	// each device sends all it has, one oldest first, the next newest first,
	// the third in no order, and some uploads twice.
	Burst Mode = "burst"
	// ClockSkew has clocks that are wrong. Out of five devices one is some
	// minutes ahead, one some minutes behind, one hours behind, one hours
	// ahead, and one believes in 1970. They drift by up to 20 seconds a day.
	ClockSkew Mode = "clock-skew"
	// Duplicate is Backfill by devices that do not trust the line: uploads
	// come again, also late, overlap and lose their order. The readings are
	// those of Backfill.
	Duplicate Mode = "duplicate"
	// MissingMetric lacks one metric in ten, all of them in one reading of a
	// hundred, and one metric altogether in every third device.
	MissingMetric Mode = "missing-metric"
	// WeakSignal sends late: devices keep hours of readings until an upload
	// gets through, parts of it newest first, some of it twice, and not every
	// upload knows its signal. The readings are those of Backfill.
	WeakSignal Mode = "weak-signal"
)

// Modes lists every mode.
var Modes = []Mode{Live, Backfill, Burst, ClockSkew, Duplicate, MissingMetric, WeakSignal}

// The most readings that a mode puts into one upload: a line of a day stays
// far below the size that the queue takes.
const (
	burstReadings = 500
	weakReadings  = 300
)

// Plan is what a fleet sends of a window of the past.
type Plan struct {
	Fleet
	Mode Mode // any but Live
	// The window [From, Until), cut to whole buckets.
	From, Until time.Time
}

// Measurements is about how many measurements the window holds: all of them,
// if no device had a gap.
func (p *Plan) Measurements() int {
	window := roomsensor.BucketOf(p.Until).Sub(roomsensor.BucketOf(p.From))
	return max(0, int(window/roomsensor.BucketLength)) * p.Devices
}

// Uploads yields the uploads in the order in which they are sent. An upload is
// valid until the next one.
func (p *Plan) Uploads() iter.Seq[*Upload] {
	way := ways[p.Mode]
	from, until := roomsensor.BucketOf(p.From), roomsensor.BucketOf(p.Until)
	length := way.turn
	if length == 0 {
		length = until.Sub(from)
	}
	return func(yield func(*Upload) bool) {
		senders := make([]*sender, p.Devices)
		for t := range turns(from, until, length) {
			for i := range senders {
				if senders[i] == nil {
					senders[i] = newSender(p.Device(i), from, i, yield)
				}
				if !senders[i].takeTurn(way, t) {
					return
				}
			}
		}
	}
}

// Uploads yields what the device sends of [from, until) when it comes back
// after that time without a connection: all of it in order, a day an upload.
// An upload is valid until the next one.
func (d *Device) Uploads(from, until time.Time) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		s := newSender(d, from, 0, yield)
		for t := range turns(from, until, ways[Backfill].turn) {
			if !s.takeTurn(ways[Backfill], t) {
				return
			}
		}
	}
}

// turn is a part of a window that each device sends before the next part.
type turn struct {
	from, to time.Time
	last     bool
}

// turns cuts a window into parts of a length.
func turns(from, until time.Time, length time.Duration) iter.Seq[turn] {
	return func(yield func(turn) bool) {
		for from.Before(until) {
			to := from.Add(length)
			if !to.Before(until) {
				yield(turn{from, until, true})
				return
			}
			if !yield(turn{from, to, false}) {
				return
			}
			from = to
		}
	}
}
