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
	// ClockSkew has wrong clocks. Of five devices, one is minutes next, one minutes behind, one hours behind, one hours
	// next, and one shows 1970. They drift by up to 20 seconds per day.
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

// The maximum number of readings in one upload of a mode. An upload of a whole day is far below the maximum message
// size.
const (
	burstReadings = 500
	weakReadings  = 300
)

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
	st := strategies[p.Mode]
	from, until := roomsensor.BucketOf(p.From), roomsensor.BucketOf(p.Until)
	length := st.turn
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
				if !senders[i].takeTurn(st, t) {
					return
				}
			}
		}
	}
}

// Uploads yields the uploads of [from, until) that the device sends in Backfill mode. An upload is valid until the next
// one.
func (d *Device) Uploads(from, until time.Time) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		s := newSender(d, from, 0, yield)
		for t := range turns(from, until, strategies[Backfill].turn) {
			if !s.takeTurn(strategies[Backfill], t) {
				return
			}
		}
	}
}

// turn is a part of a window. All devices send it before the next part.
type turn struct {
	from, to time.Time
	last     bool
}

// turns splits a window into parts of a length.
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

// strategy is how a mode sends: each device in turn sends what it measured in the turn. With turn 0, a device sends
// everything before the next device begins.
type strategy struct {
	turn time.Duration
	send func(s *sender, last bool) bool // false: the consumer stopped
}

var strategies = map[Mode]strategy{
	Backfill:      {24 * time.Hour, (*sender).backfill},
	Burst:         {0, (*sender).burst},
	ClockSkew:     {24 * time.Hour, (*sender).skewed},
	Duplicate:     {24 * time.Hour, (*sender).duplicated},
	MissingMetric: {24 * time.Hour, (*sender).incomplete},
	WeakSignal:    {time.Hour, (*sender).weak},
}

// sender is a device with the measurements that it has not sent yet.
type sender struct {
	sampler *sampler
	rng     *rng
	index   int
	start   time.Time
	yield   func(*Upload) bool
	now     time.Time
	buffer  []roomsensor.Measurement
	before  []roomsensor.Measurement // what Duplicate sent in the last turn
	upload  Upload
	signal  Signal
}

func newSender(d *Device, from time.Time, index int, yield func(*Upload) bool) *sender {
	return &sender{
		sampler: newSampler(d, from),
		rng:     newRNG(d.seed, streamDelivery),
		index:   index,
		start:   from,
		yield:   yield,
	}
}

func (s *sender) takeTurn(st strategy, t turn) bool {
	s.buffer = s.sampler.take(s.buffer, t.to)
	s.now = t.to.Add(time.Duration(s.rng.IntN(20)) * time.Second)
	if st.turn == 0 {
		defer func() { s.buffer, s.sampler = nil, nil }() // The backlogs of all devices would not fit into memory.
	}
	return st.send(s, t.last)
}

// send yields one upload, unless it has no readings.
func (s *sender) send(readings []roomsensor.Measurement) bool {
	if len(readings) == 0 {
		return true
	}
	s.prepare(readings)
	return s.yield(&s.upload)
}

// prepare prepares the next upload.
func (s *sender) prepare(readings []roomsensor.Measurement) {
	unit := &s.sampler.device.unit
	s.signal = signalOf(int(s.rng.around(unit.rssi, 3)))
	s.upload = Upload{
		HardwareID: s.sampler.device.HardwareID,
		SentAt:     s.now,
		Firmware:   unit.firmware(s.now),
		Signal:     &s.signal,
		Readings:   readings,
	}
	s.now = s.now.Add(time.Second)
}

// sendAgain repeats the last upload one second later.
func (s *sender) sendAgain() bool {
	s.upload.SentAt = s.now
	s.now = s.now.Add(time.Second)
	return s.yield(&s.upload)
}

// clear empties the buffer after it was sent.
func (s *sender) clear() { s.buffer = s.buffer[:0] }
