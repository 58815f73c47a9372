package simulate

import (
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
)

// partReadings is the maximum number of readings in one upload of Burst and WeakSignal. An upload of a whole day, which
// the other modes send, is far below the maximum message size.
const partReadings = 200

// sender is a device with the measurements that it has not sent yet.
type sender struct {
	device *Device
	index  int
	mode   Mode
	start  time.Time
	yield  func(*Upload) bool // false: the consumer stopped
	rng    rng
	now    time.Time
	buffer []roomsensor.Measurement
	before []roomsensor.Measurement // what Duplicate sent in the last turn
	upload Upload
}

// takeTurn sends what the device measured in a turn. It returns false if the consumer stopped.
func (s *sender) takeTurn(m *sampler, from, to time.Time, last bool) bool {
	s.buffer = m.take(s.buffer, s.device, from, to)
	s.now = to.Add(time.Duration(s.rng.IntN(20)) * time.Second)
	if s.mode == WeakSignal && !last && len(s.buffer) < roomsensor.MaxUploadReadings/2 && s.rng.chance(0.8) {
		return true // No upload succeeds in this turn.
	}
	ok := s.deliver()
	s.buffer = s.buffer[:0]
	if last {
		s.buffer = nil // The backlogs of all devices would not fit into memory.
	}
	return ok
}

// deliver sends the buffer.
func (s *sender) deliver() bool {
	switch s.mode {
	case Burst:
		switch s.index % 3 {
		case 1:
			slices.Reverse(s.buffer)
		case 2:
			s.shuffle()
		}
		return s.sendParts(false, 0.1)
	case WeakSignal:
		return s.sendParts(s.rng.chance(0.5), 0.15)
	case Duplicate:
		return s.sendDuplicates()
	case ClockSkew:
		s.skewClock()
	case MissingMetric:
		s.dropMetrics()
	default:
	}
	return s.send(s.buffer)
}

func (s *sender) shuffle() {
	s.rng.Shuffle(len(s.buffer), func(i, j int) { s.buffer[i], s.buffer[j] = s.buffer[j], s.buffer[i] })
}

// sendParts sends the buffer in parts, the last one first if it is reversed, and some of them twice.
func (s *sender) sendParts(reversed bool, twice float64) bool {
	parts := slices.Collect(slices.Chunk(s.buffer, partReadings))
	if reversed {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if !s.send(part) || s.rng.chance(twice) && !s.sendAgain() {
			return false
		}
	}
	return true
}

// send yields one upload, unless it has no readings.
func (s *sender) send(readings []roomsensor.Measurement) bool {
	if len(readings) == 0 {
		return true
	}
	unit := &s.device.unit
	s.upload.HardwareID, s.upload.Firmware, s.upload.Readings = s.device.HardwareID, unit.firmware, readings
	s.upload.Signal = signalOf(int(s.rng.around(unit.rssi, 3)))
	if s.mode == WeakSignal {
		s.upload.Signal = signalOf(s.rng.IntN(16) - 119)
		if s.rng.chance(0.1) {
			s.upload.Signal = nil
		}
	}
	return s.sendAgain()
}

// sendAgain yields the last upload, one second later.
func (s *sender) sendAgain() bool {
	s.upload.SentAt = s.now
	s.now = s.now.Add(time.Second)
	return s.yield(&s.upload)
}

// sendDuplicates sends the buffer with a part of what was sent before, out of order and repeatedly.
func (s *sender) sendDuplicates() bool {
	before := s.before
	s.before = slices.Clone(s.buffer)
	if s.rng.chance(0.2) && !s.send(before) {
		return false
	}
	overlap := min(len(before), s.rng.IntN(2*slotsOfHour))
	s.buffer = append(s.buffer, before[len(before)-overlap:]...)
	if s.rng.chance(0.5) {
		s.shuffle()
	}
	if !s.send(s.buffer) {
		return false
	}
	for len(s.buffer) > 0 && s.rng.chance(0.4) {
		if !s.sendAgain() {
			return false
		}
	}
	return true
}

// skewClock changes the times of the buffer to those of a wrong clock.
func (s *sender) skewClock() {
	d := newRNG(streamDelivery, s.device.fleet, s.device.index, 1) // The same in each turn.
	minutes := time.Duration(d.between(1, 8) * float64(time.Minute))
	hours := time.Duration(d.between(1, 12) * float64(time.Hour))
	skew := [...]time.Duration{minutes, -minutes, -hours, hours, time.Unix(0, 0).Sub(s.start)}[s.index%5]
	drift := d.between(-20, 20) / daySeconds
	for i := range s.buffer {
		at := &s.buffer[i].MeasuredAt
		gone := float64(at.Sub(s.start))
		*at = at.Add(skew + time.Duration(drift*gone)).Truncate(time.Millisecond)
	}
}

// dropMetrics drops some metrics of the buffer at random, and one of every third device always.
func (s *sender) dropMetrics() {
	lacked := roomsensor.Metrics[s.index/3%roomsensor.MetricCount]
	for i := range s.buffer {
		nothing := s.rng.chance(0.01)
		var kept roomsensor.Values
		for _, m := range roomsensor.Metrics {
			lost := s.rng.chance(0.1) || nothing || s.index%3 == 0 && m == lacked
			if x, ok := s.buffer[i].Values.Get(m); ok && !lost {
				kept.Set(m, x)
			}
		}
		s.buffer[i].Values = kept
	}
	s.upload.LeaveOut = s.rng.chance(0.5)
}
