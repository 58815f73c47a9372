package upload

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// measuredAt is the name of the time of a reading.
const measuredAt = "measured_at"

// parser collects the readings of an upload.
type parser struct {
	latest   time.Time // the latest plausible measured_at
	readings []Reading
}

// reading parses one element of the array. Elements beyond the limit are only counted, because the whole upload is then
// refused.
func (p *parser) reading(d *document) *malformed {
	if d.count >= roomsensor.MaxUploadReadings {
		return d.skip()
	}
	r := Reading{Problem: roomsensor.ReasonMeasuredAtInvalid, raw: span{from: d.next()}}
	var bad *malformed
	if d.dec.PeekKind() == '{' {
		bad = d.members(func(name []byte) *malformed { return p.member(d, &r, name) })
	} else {
		bad = d.skip()
	}
	r.raw.to = d.offset()
	p.readings = append(p.readings, r)
	return bad
}

func (p *parser) member(d *document, r *Reading, name []byte) *malformed {
	if string(name) == measuredAt {
		return p.measuredAt(d, r)
	}
	if m, ok := roomsensor.MetricNamed(string(name)); ok {
		r.HasMetric = true
		return value(d, r, m)
	}
	return d.ignore(name)
}

func (p *parser) measuredAt(d *document, r *Reading) *malformed {
	raw, bad := d.value()
	if bad != nil {
		return bad
	}
	text, _ := textOf(raw)
	at, ok := roomsensor.ParseTime(text)
	if !ok {
		return nil
	}
	r.MeasuredAt, r.Problem = at, ""
	if at.Before(roomsensor.MeasuredFrom) || at.After(p.latest) {
		r.Problem = roomsensor.ReasonMeasuredAtOutOfRange
	}
	return nil
}

// value reads one metric. It checks the range before the value is rounded to 32 bits.
func value(d *document, r *Reading, m roomsensor.Metric) *malformed {
	switch d.dec.PeekKind() {
	case 'n':
		return d.skip()
	case '0':
	default:
		r.BadValues |= 1 << m
		r.NotNumbers |= 1 << m
		return d.skip()
	}
	raw, bad := d.value()
	if bad != nil {
		return bad
	}
	least, greatest := m.Range()
	if sent, err := strconv.ParseFloat(string(raw), 64); err != nil || sent < least || sent > greatest {
		r.BadValues |= 1 << m
		return nil
	}
	stored, _ := strconv.ParseFloat(string(raw), 32) // In range as 64 bits, so in range as 32 bits.
	r.Values.Set(m, float32(stored))
	return nil
}
