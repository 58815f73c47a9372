package mapping

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

// TimeFormat is a format of times in messages (time rule, A11.5).
type TimeFormat struct {
	name  string
	zone  *time.Location // of format local
	shift int            // of unix formats: decimal digits of a unit that are left of microseconds
}

// formatLocal is the format of times without a zone.
const formatLocal = "local"

// timeFormats are the formats other than rfc3339 and local, and how many digits microseconds have more.
var timeFormats = map[string]int{"unix": 6, "unix_ms": 3, "unix_us": 0, "unix_ns": -3}

// NewTimeFormat returns the format rfc3339, unix, unix_ms, unix_us, unix_ns or local (time rule, A11.5). zone is an
// IANA name for local, and empty for all others. An error is a predicate that names the format or zone.
func NewTimeFormat(name, zone string) (TimeFormat, error) {
	shift, isUnix := timeFormats[name]
	f := TimeFormat{name: name, shift: shift}
	switch {
	case name != "rfc3339" && name != formatLocal && !isUnix:
		return f, fmt.Errorf("has the unknown format %.100q: use rfc3339, unix, unix_ms, unix_us, unix_ns or local", name)
	case name == formatLocal && zone == "":
		return f, fmt.Errorf("has the format local without a time_zone such as Europe/Berlin")
	case name != formatLocal && zone != "":
		return f, fmt.Errorf("has a time_zone, which only the format local takes")
	case name == formatLocal:
		var known bool
		if f.zone, known = timezone.Load(zone); !known {
			return f, fmt.Errorf("has the unknown time_zone %.100q: use an IANA name such as Europe/Berlin", zone)
		}
	}
	return f, nil
}

// Parse parses a text or a number as it was written, and truncates it to microseconds; the result is in UTC. It
// computes with decimal digits: no number of nanoseconds is rounded. It returns false for a text that does not fit the
// format.
func (f *TimeFormat) Parse(text []byte) (at time.Time, ok bool) {
	switch f.name {
	case "rfc3339":
		err := at.UnmarshalText(text)
		return at.UTC().Truncate(time.Microsecond), err == nil && hasClock(text)
	case formatLocal:
		return parseLocal(text, f.zone)
	}
	micros, ok := shiftedInteger(text, f.shift)
	return time.UnixMicro(micros).UTC(), ok
}

// hasClock reports whether a time has hours of two digits and no comma. Package time accepts others.
func hasClock(text []byte) bool {
	return text[len("2006-01-02T15")] == ':' && bytes.IndexByte(text, ',') < 0
}

// parseLocal parses a time such as 2026-01-31T08:00:00. A blank may replace the T, a fraction may follow, and seconds
// may be missing.
func parseLocal(text []byte, zone *time.Location) (time.Time, bool) {
	const minutes, date = "2006-01-02T15:04", "2006-01-02"
	if len(text) < len(minutes) || (text[len(date)] != 'T' && text[len(date)] != ' ') {
		return time.Time{}, false
	}
	clock := string(text[:len(date)]) + "T" + string(text[len(date)+1:])
	wall, err := time.Parse(minutes, clock)
	if err != nil {
		wall, err = time.Parse("2006-01-02T15:04:05", clock)
	}
	if err != nil {
		return time.Time{}, false
	}
	return roomsensor.LocalInstant(wall, zone).Truncate(time.Microsecond), true
}

// maxShiftedDigits is the number of digits that always fit into 64 bits.
const maxShiftedDigits = 18

// shiftedInteger returns the integer part of a decimal number times a power of ten, rounded down. It returns false for
// a text that is not a decimal number, and for results of more than 18 digits.
func shiftedInteger(text []byte, power int) (int64, bool) {
	if !IsDecimal(text) {
		return 0, false
	}
	mantissa, exponent := text, 0
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		mantissa = text[:e]
		exponent, _ = strconv.Atoi(string(text[e+1:])) // The nearest int if there are too many digits.
		exponent = min(max(exponent, -math.MaxInt32), math.MaxInt32)
	}
	negative := mantissa[0] == '-'
	whole, fraction, _ := bytes.Cut(bytes.TrimLeft(mantissa, "+-"), []byte("."))
	digits := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	point := len(whole) + exponent + power
	for len(digits) > 0 && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	if len(digits) == 0 {
		return 0, true
	}
	if point > maxShiftedDigits {
		return 0, false
	}
	var n int64
	for i := range point {
		n *= 10
		if i < len(digits) {
			n += int64(digits[i] - '0')
		}
	}
	if negative {
		n = -n
		if point < len(digits) && len(bytes.Trim(digits[max(point, 0):], "0")) > 0 {
			n--
		}
	}
	return n, true
}

// IsDecimal reports whether text is a decimal number in full: an optional sign, digits with an optional point, and an
// optional exponent (value rule, A11.6).
func IsDecimal(text []byte) bool {
	rest := skipSign(text)
	whole, rest := cutDigits(rest)
	fraction := 0
	if len(rest) > 0 && rest[0] == '.' {
		fraction, rest = cutDigits(rest[1:])
	}
	if whole+fraction == 0 {
		return false
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		var digits int
		if digits, rest = cutDigits(skipSign(rest[1:])); digits == 0 {
			return false
		}
	}
	return len(rest) == 0
}

func skipSign(text []byte) []byte {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		return text[1:]
	}
	return text
}

// cutDigits returns the number of digits at the beginning of a text, and the rest.
func cutDigits(text []byte) (digits int, rest []byte) {
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	return digits, text[digits:]
}
