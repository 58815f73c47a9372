package simulate

import (
	"iter"
	"time"

	"roomsensor/internal/roomsensor"
)

// Mode is how devices send their measurements.
type Mode string

// The modes. All but Live send the measurements of a window in the past.
const (
	// Live sends the newest measurement of each device in turn, without an end.
	Live Mode = "live"
	// Backfill sends everything in order, one day of one device per upload.
	Backfill Mode = "backfill"
	// Burst reconnects all devices at once after an outage: each device sends everything, the first one oldest first, the
	// next newest first, the third in random order, and some uploads twice.
	Burst Mode = "burst"
	// ClockSkew has wrong clocks. Of five devices, one is minutes ahead, one minutes behind, one hours behind, one hours
	// ahead, and one shows 1970. They drift by up to 20 seconds per day.
	ClockSkew Mode = "clock-skew"
	// Duplicate repeats uploads, also late; they overlap and arrive out of order. The readings are those of Backfill.
	Duplicate Mode = "duplicate"
	// MissingMetric omits one metric in ten, all of them in one reading of a hundred, and one metric in every reading of
	// every third device.
	MissingMetric Mode = "missing-metric"
	// WeakSignal sends late: devices buffer readings for hours until an upload succeeds, some parts newest first, some
	// twice, and some uploads without a signal. The readings are those of Backfill.
	WeakSignal Mode = "weak-signal"
)

// Modes lists all modes.
var Modes = []Mode{Live, Backfill, Burst, ClockSkew, Duplicate, MissingMetric, WeakSignal}

// Plan is a window of the past that a fleet sends.
type Plan struct {
	Fleet
	Mode Mode // any but Live
	// The window [From, Until), truncated to whole buckets.
	From, Until time.Time
}

// Measurements returns the number of measurements in the window if there are no gaps.
func (p *Plan) Measurements() int {
	window := roomsensor.BucketOf(p.Until).Sub(roomsensor.BucketOf(p.From))
	return max(0, int(window/roomsensor.BucketLength)) * p.Devices
}

// Uploads yields the uploads in the order in which they are sent. An upload is valid until the next one.
func (p *Plan) Uploads() iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		from, until := roomsensor.BucketOf(p.From), roomsensor.BucketOf(p.Until)
		devices := make([]*Device, p.Devices)
		for i := range devices {
			devices[i] = p.Device(i)
		}
		sendWindow(devices, p.Mode, from, until, yield)
	}
}

// Uploads yields the uploads of [from, until) that the device sends in Backfill mode. An upload is valid until the next
// one.
func (d *Device) Uploads(from, until time.Time) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) { sendWindow([]*Device{d}, Backfill, from, until, yield) }
}

// sendWindow sends a window in turns: what was measured in a turn, all devices send before the next turn.
func sendWindow(devices []*Device, mode Mode, from, until time.Time, yield func(*Upload) bool) {
	turn := 24 * time.Hour
	switch mode {
	case Burst:
		turn = until.Sub(from)
	case WeakSignal:
		turn = time.Hour
	default:
	}
	s, senders := &sampler{}, make([]sender, len(devices))
	for i, d := range devices {
		r := newRNG(streamDelivery, d.fleet, d.index)
		senders[i] = sender{device: d, index: i, mode: mode, start: from, yield: yield, rng: r}
	}
	for ; from.Before(until); from = from.Add(turn) {
		to := from.Add(turn)
		if to.After(until) {
			to = until
		}
		for i := range senders {
			if !senders[i].takeTurn(s, from, to, to.Equal(until)) {
				return
			}
		}
	}
}
