package simulate

import (
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
)

func (s *sender) backfill(bool) bool {
	defer s.clear()
	return s.send(s.buffer)
}

func (s *sender) burst(bool) bool {
	parts := slices.Collect(slices.Chunk(s.buffer, burstReadings))
	switch s.index % 3 {
	case 1:
		slices.Reverse(s.buffer)
	case 2:
		s.shuffle(s.buffer)
	}
	for _, part := range parts {
		if !s.send(part) || s.rng.chance(0.1) && !s.sendAgain() {
			return false
		}
	}
	return true
}

func (s *sender) shuffle(readings []roomsensor.Measurement) {
	s.rng.Shuffle(len(readings), func(i, j int) { readings[i], readings[j] = readings[j], readings[i] })
}

func (s *sender) skewed(bool) bool {
	defer s.clear()
	d := newRNG(s.sampler.device.seed, streamDelivery, 1) // The same in each turn.
	skew := s.initialSkew(d)
	drift := d.between(-20, 20) / daySeconds
	for i := range s.buffer {
		at := &s.buffer[i].MeasuredAt
		gone := float64(at.Sub(s.start))
		*at = at.Add(skew + time.Duration(drift*gone)).Truncate(time.Millisecond)
	}
	return s.send(s.buffer)
}

// initialSkew returns how far ahead the clock of the device is at first.
func (s *sender) initialSkew(d *rng) time.Duration {
	minutes := time.Duration(d.between(1, 8) * float64(time.Minute))
	hours := time.Duration(d.between(1, 12) * float64(time.Hour))
	switch s.index % 5 {
	case 0:
		return minutes
	case 1:
		return -minutes
	case 2:
		return -hours
	case 3:
		return hours
	}
	return time.Unix(0, 0).Sub(s.start)
}

func (s *sender) duplicated(bool) bool {
	fresh := slices.Clone(s.buffer)
	defer func() { s.before = fresh; s.clear() }()
	if s.rng.chance(0.2) && !s.send(s.before) {
		return false
	}
	overlap := min(len(s.before), s.rng.IntN(2*slotsOfHour))
	s.buffer = append(s.buffer, s.before[len(s.before)-overlap:]...)
	if s.rng.chance(0.5) {
		s.shuffle(s.buffer)
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

func (s *sender) incomplete(bool) bool {
	defer s.clear()
	lacks := uint8(0)
	if s.index%3 == 0 {
		lacks = 1 << (s.index / 3 % roomsensor.MetricCount)
	}
	for i := range s.buffer {
		s.buffer[i].Values = s.dropMetrics(&s.buffer[i].Values, lacks)
	}
	if len(s.buffer) == 0 {
		return true
	}
	s.prepare(s.buffer)
	s.upload.LeaveOut = s.rng.chance(0.5)
	return s.yield(&s.upload)
}

// dropMetrics drops some metrics at random, and those of a mask always.
func (s *sender) dropMetrics(all *roomsensor.Values, lacks uint8) roomsensor.Values {
	nothing := s.rng.chance(0.01)
	var values roomsensor.Values
	for _, m := range roomsensor.Metrics {
		lost := s.rng.chance(0.1)
		if x, ok := all.Get(m); ok && !lost && !nothing && lacks&(1<<m) == 0 {
			values.Set(m, x)
		}
	}
	return values
}

func (s *sender) weak(last bool) bool {
	if !last && len(s.buffer) < roomsensor.MaxUploadReadings/2 && s.rng.chance(0.8) {
		return true // No upload succeeds in this turn.
	}
	defer s.clear()
	parts := slices.Collect(slices.Chunk(s.buffer, weakReadings))
	if s.rng.chance(0.5) {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		s.prepare(part)
		s.signal = signalOf(s.rng.IntN(16) - 119)
		if s.rng.chance(0.1) {
			s.upload.Signal = nil
		}
		if !s.yield(&s.upload) || s.rng.chance(0.15) && !s.sendAgain() {
			return false
		}
	}
	return true
}
