// Package wording has the words for people: metrics, durations, verdicts, and what to do. Pages and mails share it.
package wording

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"roomsensor/internal/roomsensor"
)

// NoData is what people see instead of a value that is missing.
const NoData = "no data"

// Age returns a duration before now in words, in its greatest unit.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + Span(-d)
	case d < time.Minute:
		return "just now"
	}
	return Span(d) + " ago"
}

// Span returns a duration in words, in its greatest unit.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < day:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
	return Plural(int(d/day), "day")
}

// MetricTexts are the names, units and decimals of metrics for people, in the order of roomsensor.Metrics. The scale of
// a chart reaches from Low to High at least, so that noise does not look like a change.
var MetricTexts = [roomsensor.MetricCount]struct {
	Name, Unit string
	Decimals   int
	Low, High  float32
}{
	roomsensor.CO2:      {"CO₂", "ppm", 0, 400, 1000},
	roomsensor.Temp:     {"Temperature", "°C", 1, 16, 26},
	roomsensor.Humidity: {"Humidity", "%", 0, 30, 60},
	roomsensor.Lux:      {"Light", "lux", 0, 0, 500},
	roomsensor.Sound:    {"Sound", "dB", 0, 30, 50},
}

// Plural returns a number with a word: "1 device", "2 devices".
func Plural(n int, word string, other ...string) string {
	switch {
	case n == 1:
		return "1 " + word
	case len(other) > 0:
		return strconv.Itoa(n) + " " + other[0]
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// StatusText is a status for people.
type StatusText struct{ Text, Badge string }

// The statuses for people. A device that never sent an upload is offline for the API; people have to do something else
// about it.
var (
	statusOnline  = StatusText{"Online", "ok"}
	statusStale   = StatusText{"Stale", "warn"}
	statusOffline = StatusText{"Offline", "bad"}
	statusNever   = StatusText{"No upload yet", "off"}
)

// StatusTextOf returns the status of a device for people. lastSeen is nil for a device that never sent an upload.
func StatusTextOf(status roomsensor.Status, lastSeen *time.Time) StatusText {
	switch {
	case lastSeen == nil:
		return statusNever
	case status == roomsensor.Online:
		return statusOnline
	case status == roomsensor.Stale:
		return statusStale
	}
	return statusOffline
}

// ParseTag returns the key and the value of a tag as people write it: "building=gym" or "building: gym".
func ParseTag(text string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(text, "=")
	if !ok {
		key, value, ok = strings.Cut(text, ":")
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// SortNames sorts in the order of CompareNames.
func SortNames[T any](all []T, name func(*T) string) {
	compare := CompareNames()
	slices.SortStableFunc(all, func(a, b T) int { return compare(name(&a), name(&b)) })
}

// CompareNames returns a function that orders names as people expect it: "room 9" before "Room 10". Only one goroutine
// may use it at a time.
func CompareNames() func(a, b string) int {
	return collate.New(language.Und, collate.Numeric, collate.IgnoreCase).CompareString
}

// TextOr returns an optional text, such as the display name of a device, or another one if it is nil, such as the
// hardware id.
func TextOr(optional *string, other string) string {
	if optional == nil {
		return other
	}
	return *optional
}

// WrongUnit is the error of a field for a unit.
const WrongUnit = "A unit is dev: and 1 to 20 digits, such as dev:864475046552567, or the name with which its sender " +
	"sends it, such as a84041b9d1c2f3e4. Write hexadecimal digits without blanks."

// UnitOf returns the hardware id that a search is, with or without its prefix. It is empty for any other search.
func UnitOf(search string) string {
	id := WithUnitPrefix(strings.TrimSpace(search))
	if !roomsensor.IsHardwareID(id) {
		return ""
	}
	return id
}

// unitPrefix is what a hardware id begins with. People may leave it out.
const unitPrefix = "dev:"

// WithUnitPrefix returns a unit that a person entered: a hardware id with its prefix, anything else as it was entered.
func WithUnitPrefix(text string) string {
	if id := unitPrefix + text; roomsensor.IsHardwareID(id) {
		return id
	}
	return text
}

// IsUnit reports whether a text is a hardware id or an alias. An alias that begins like a hardware id must have
// hexadecimal digits: it is more likely a typing error.
func IsUnit(text string) bool {
	_, hexadecimal := roomsensor.AliasHardwareID(text)
	return roomsensor.IsHardwareID(text) || hexadecimal ||
		roomsensor.CheckAlias(text) == nil && !strings.HasPrefix(text, unitPrefix)
}
