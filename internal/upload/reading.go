package upload

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// parser collects the readings of an upload.
type parser struct {
	latest   time.Time // the greatest measured_at that is plausible
	readings []Reading
}

// reading judges one element of the array. Those past the limit are only
// counted: the upload is refused as a whole then.
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
	if string(name) == "measured_at" {
		return p.measuredAt(d, r)
	}
	if m, ok := roomsensor.MetricNamed(string(name)); ok {
		return value(d, r, m)
	}
	return d.skip()
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

// value reads one metric. What was sent is held to the range, not what 32 bits
// make of it.
func value(d *document, r *Reading, m roomsensor.Metric) *malformed {
	switch d.dec.PeekKind() {
	case 'n':
		return d.skip()
	case '0':
	default:
		r.BadValues |= 1 << m
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
	stored, _ := strconv.ParseFloat(string(raw), 32) // In range there, so in range here.
	r.Values.Set(m, float32(stored))
	return nil
}
