package mapping

import (
	"math"
	"slices"
	"strconv"

	"roomsensor/internal/roomsensor"
)

// values are the metrics of an element.
type values struct {
	roomsensor.Values

	bad        uint8 // bit i is set where metric i is outside its range, or not a number
	notNumbers uint8 // those of them that are not a number
	unusable   *path // of the first value that is not a number
	metric     roomsensor.Metric
}

// readValues reads the metrics of an element. For each metric, the first alternative with a value counts (value rule,
// A11.6).
func (e *evaluation) readValues(at int32) (v values) {
	for _, m := range roomsensor.Metrics {
		for i := range e.metrics[m] {
			a := &e.metrics[m][i]
			if a.when != nil && !e.holds(a.when, at) {
				continue
			}
			if found := e.find(at, &a.path); !e.isNull(found) {
				e.readValue(&v, m, a, found)
				break
			}
		}
	}
	return v
}

// isNull reports whether a node is missing, null, or a text that counts as null.
func (e *evaluation) isNull(at int32) bool {
	if at == missing {
		return true
	}
	kind := e.doc.nodes[at].kind
	return kind == 'n' || (kind == '"' && slices.Contains(e.nulls, string(e.doc.content(at))))
}

// readValue reads one value.
func (e *evaluation) readValue(v *values, m roomsensor.Metric, a *alternative, at int32) {
	text, ok := e.number(at)
	if !ok {
		v.bad |= 1 << m
		v.notNumbers |= 1 << m
		if v.unusable == nil {
			v.unusable, v.metric = &a.path, m
		}
		return
	}
	stored, ok := Convert(m, string(text), a.scale, a.offset)
	if !ok {
		v.bad |= 1 << m
		return
	}
	v.Set(m, stored)
}

// Convert returns a decimal number x scale + offset as a value of a metric, or false if that is outside its range
// (value rule, A11.6). It checks the range before it rounds to 32 bits. A number that scale and offset do not change is
// rounded once, from its digits, as that of an upload is.
func Convert(m roomsensor.Metric, number string, scale, offset float64) (float32, bool) {
	least, greatest := m.Range()
	sent, err := strconv.ParseFloat(number, 64)
	// The conversion rounds the product, which some processors would not.
	x := float64(sent*scale) + offset
	if err != nil || !(least <= x && x <= greatest) { // NaN is outside, too.
		return 0, false
	}
	if x == sent {
		exact, _ := strconv.ParseFloat(number, 32) // In range as 64 bits, so in range as 32 bits.
		return float32(exact), true
	}
	return float32(x), true
}

// IsNull reports whether a text counts as missing unless a mapping says otherwise (value rule, A11.6).
func IsNull(text string) bool { return slices.Contains(defaultNulls, text) }

// number returns a JSON number, or a text that is a decimal number in full.
func (e *evaluation) number(at int32) ([]byte, bool) {
	kind, text := e.doc.nodes[at].kind, e.doc.content(at)
	return text, kind == '0' || (kind == '"' && IsDecimal(text))
}

// unitOf reads the unit of an element, a text or a whole number, whose digits are kept. Null and the empty text do not
// count (unit rule, A11.4). detail says what is wrong if there is none.
func (e *evaluation) unitOf(at int32) (unit, detail string) {
	for i := range e.unit {
		found := e.find(at, &e.unit[i])
		if found == missing {
			continue
		}
		kind, text := e.doc.nodes[found].kind, e.doc.content(found)
		switch {
		case kind == 'n' || (kind == '"' && len(text) == 0):
			continue
		case kind == '"', kind == '0' && isWhole(text):
			if unit = string(text); roomsensor.CheckName(unit) == nil {
				return unit, ""
			}
		}
		return "", quoted(e.unit[i:i+1]) + " is not a unit: a unit is a whole number, or text of 1 to 200 characters " +
			"without control characters."
	}
	return "", e.noUnit
}

// isWhole reports whether a JSON number has neither a fraction nor an exponent.
func isWhole(number []byte) bool {
	digits, rest := cutDigits(skipSign(number))
	return digits > 0 && len(rest) == 0
}

// signalOf reads the signal of an element; nil if it has none. A part that does not fit is ignored (signal rule,
// A11.7). The RSSI is any 32-bit number of dBm except for the lowest, as in an upload.
func (e *evaluation) signalOf(at int32) *roomsensor.Signal {
	var signal roomsensor.Signal
	if x, ok := e.whole(at, e.rssi, math.MinInt32+1, math.MaxInt32); ok {
		signal.RSSI = new(int32(x))
	}
	if x, ok := e.whole(at, e.bars, 0, roomsensor.MaxBars); ok {
		signal.Bars = new(int16(x))
	}
	if signal.RSSI == nil && signal.Bars == nil {
		return nil
	}
	return &signal
}

// whole reads an integer within bounds from the first path with a value.
func (e *evaluation) whole(at int32, paths []path, least, greatest float64) (float64, bool) {
	found := e.first(at, paths)
	if found == missing {
		return 0, false
	}
	text, ok := e.number(found)
	x, err := strconv.ParseFloat(string(text), 64)
	return x, ok && err == nil && x == math.Trunc(x) && least <= x && x <= greatest
}

// firmwareOf reads the firmware version of an element; nil if it has none, or one that does not fit (A11.7).
func (e *evaluation) firmwareOf(at int32) *string {
	found := e.first(at, e.firmware)
	if found == missing || e.doc.nodes[found].kind != '"' {
		return nil
	}
	text := string(e.doc.content(found))
	if !roomsensor.IsFirmwareVersion(text) {
		return nil
	}
	return &text
}

// first returns the first value that exists and is not null.
func (e *evaluation) first(at int32, paths []path) int32 {
	for i := range paths {
		if found := e.find(at, &paths[i]); found != missing && e.doc.nodes[found].kind != 'n' {
			return found
		}
	}
	return missing
}

// holds reports whether a condition holds for an element (ignore rule, A11.8).
func (e *evaluation) holds(c *condition, at int32) bool {
	if c.absent {
		return e.first(at, c.paths) == missing
	}
	for i := range c.paths {
		if found := e.find(at, &c.paths[i]); found != missing {
			return e.equal(found, &c.equals)
		}
	}
	return false
}

// equal compares a value with one of the mapping. Numbers are equal if their 64-bit values are; 1 is 1.0, but not "1".
func (e *evaluation) equal(at int32, s *scalar) bool {
	if e.doc.nodes[at].kind != s.kind {
		return false
	}
	text := e.doc.content(at)
	switch s.kind {
	case '"':
		return string(text) == s.text
	case '0':
		x, err := strconv.ParseFloat(string(text), 64)
		return err == nil && x == s.number
	default: // A boolean or null.
		return true
	}
}
