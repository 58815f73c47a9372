package simulate

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// way says how a mode sends: each device in turn, what it measured in the
// turn. Without a turn a device sends all it has before the next one begins.
type way struct {
	turn time.Duration
	send func(s *sender, last bool) bool // false: nobody wants more
}

var ways = map[Mode]way{
	Backfill:      {24 * time.Hour, (*sender).backfill},
	Burst:         {0, (*sender).burst},
	ClockSkew:     {24 * time.Hour, (*sender).skewed},
	Duplicate:     {24 * time.Hour, (*sender).duplicated},
	MissingMetric: {24 * time.Hour, (*sender).incomplete},
	WeakSignal:    {time.Hour, (*sender).weak},
}

// sender is a device with what it has not sent yet.
type sender struct {
	walk   *walk
	dice   *dice
	index  int
	start  time.Time
	yield  func(*Upload) bool
	now    time.Time
	buffer []roomsensor.Measurement
	before []roomsensor.Measurement // what Duplicate sent last
	upload Upload
	signal Signal
}

func newSender(d *Device, from time.Time, index int, yield func(*Upload) bool) *sender {
	return &sender{
		walk:  newWalk(d, from),
		dice:  newDice(d.seed, streamDelivery),
		index: index,
		start: from,
		yield: yield,
	}
}

func (s *sender) takeTurn(w way, t turn) bool {
	s.buffer = s.walk.take(s.buffer, t.to)
	s.now = t.to.Add(time.Duration(s.dice.IntN(20)) * time.Second)
	if w.turn == 0 {
		defer func() { s.buffer, s.walk = nil, nil }() // A fleet's backlog does not fit into memory.
	}
	return w.send(s, t.last)
}

// send yields one upload; one without readings is not sent.
func (s *sender) send(readings []roomsensor.Measurement) bool {
	if len(readings) == 0 {
		return true
	}
	s.prepare(readings)
	return s.yield(&s.upload)
}

// prepare makes the next upload.
func (s *sender) prepare(readings []roomsensor.Measurement) {
	unit := &s.walk.device.unit
	s.signal = signalOf(int(s.dice.around(unit.rssi, 3)))
	s.upload = Upload{
		HardwareID: s.walk.device.HardwareID,
		SentAt:     s.now,
		Firmware:   unit.firmware(s.now),
		Signal:     &s.signal,
		Readings:   readings,
	}
	s.now = s.now.Add(time.Second)
}

// sendAgain yields the last upload once more, a little later.
func (s *sender) sendAgain() bool {
	s.upload.SentAt = s.now
	s.now = s.now.Add(time.Second)
	return s.yield(&s.upload)
}

// clear forgets what was sent.
func (s *sender) clear() { s.buffer = s.buffer[:0] }
