package roomsensor

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WindowRule is the length of the windows of an endpoint.
type WindowRule struct {
	Default time.Duration // of the window without a start (decision 3 b and d)
	Max     time.Duration // of the widest window that a client may request (decision 4)
}

const day = 24 * time.Hour

// MaxWindow is the widest window of readings (spec 8, Time range).
const MaxWindow = 90 * day

// ReadingWindows is the rule of the endpoints that serve readings (spec 4, readings).
var ReadingWindows = WindowRule{Default: day, Max: MaxWindow}

// Window is the half-open interval [From, To) of bucket times (decision 3). To is Forever if it has no end yet.
type Window struct {
	From, To time.Time
}

// Intersect returns the overlap of both windows, which may be empty.
func (w Window) Intersect(o Window) Window {
	return Window{Later(w.From, o.From), Earlier(w.To, o.To)}
}

// Empty reports whether the window contains no time at all.
func (w Window) Empty() bool { return !w.From.Before(w.To) }

// Contains reports whether a time is inside the window.
func (w Window) Contains(at time.Time) bool { return !at.Before(w.From) && at.Before(w.To) }

// The buckets that the API can express are within [firstInstant, Forever).
var firstInstant = time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC)

// Expressible returns the part of a window whose buckets the API can express: RFC 3339 has the years 0 to 9999.
func Expressible(w Window) Window { return w.Intersect(Window{From: firstInstant, To: Forever}) }

// WindowRequest holds the parsed time parameters of a request. Requests that mean the same are equal, however they were
// written (decision 12). The zero WindowRequest means the default window.
type WindowRequest struct {
	From, To *time.Time
	Last     time.Duration // 0 when not given
}

// IsZero reports whether no time parameter was given.
func (r WindowRequest) IsZero() bool { return r.From == nil && r.To == nil && r.Last == 0 }

// Parse parses the time parameters; nil means that a parameter was not sent. With last, from and to are ignored
// (decision 5). Errors are time_range_invalid and time_range_too_wide with the name of the parameter.
func (r WindowRule) Parse(from, to, last *string) (WindowRequest, error) {
	if last != nil {
		length, err := r.parseLast(*last)
		return WindowRequest{Last: length}, err
	}
	var request WindowRequest
	var err error
	if request.From, err = ParseInstant("from", from); err != nil {
		return WindowRequest{}, err
	}
	if request.To, err = ParseInstant("to", to); err != nil {
		return WindowRequest{}, err
	}
	return request, nil
}

// Resolve returns the window that a request means at now (decisions 3 and 4). It is within the years that the API can
// express. Errors are the same as those of Parse.
func (r WindowRule) Resolve(request WindowRequest, now time.Time) (Window, error) {
	now = now.UTC().Truncate(time.Microsecond)
	from, to := request.From, request.To
	switch {
	case request.Last > 0:
		return Window{now.Add(-request.Last), now}, nil
	case from == nil && to == nil:
		return Window{now.Add(-r.Default), now}, nil
	case from == nil:
		return Expressible(Window{to.Add(-r.Default), *to}), nil
	case to == nil:
		if !from.Before(now) {
			return Window{}, NewError(CodeTimeRangeInvalid, "from",
				"from is in the future, and to is missing. Send a from before now, or a to after it.")
		}
		return r.checkWidth(Window{*from, now})
	case !from.Before(*to):
		return Window{}, NewError(CodeTimeRangeInvalid, "to",
			"to must be later than from: the window includes from and excludes to.")
	}
	return r.checkWidth(Window{*from, *to})
}

func (r WindowRule) checkWidth(w Window) (Window, error) {
	if w.To.Sub(w.From) > r.Max {
		return Window{}, NewError(CodeTimeRangeTooWide, "from", fmt.Sprintf(
			"The window is wider than %d days. Ask for from=%s&to=%s first, and for the rest in further requests.",
			r.maxDays(), FormatTime(w.From), FormatTime(w.From.Add(r.Max))))
	}
	return w, nil
}

func (r WindowRule) maxDays() int { return int(r.Max / day) }

// ParseInstant parses a parameter that is a time, or returns nil if it was not sent. Its error is time_range_invalid.
func ParseInstant(param string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // An absent parameter has no value and is no error.
	}
	at, ok := ParseTime(*text)
	if !ok {
		example := "for example 2026-01-31T08:00:00Z"
		if meant, ok := meantTime(*text); ok {
			example = "such as " + param + "=" + FormatTime(meant)
		}
		return nil, NewError(CodeTimeRangeInvalid, param, fmt.Sprintf(
			"%s must be a UTC time with seconds and Z, %s.", param, example))
	}
	return &at, nil
}

// otherTimes are common forms of times that are refused (decision 2). A date means its first instant; a time without a
// zone means UTC.
var otherTimes = [...]string{
	time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", time.RFC3339, time.DateTime,
}

// meantTime reads a time in one of the other forms, for a message.
func meantTime(text string) (time.Time, bool) {
	if len(text) > 40 {
		return time.Time{}, false
	}
	if len(text) > 6 && text[len(text)-6] == ' ' { // The plus of an offset, if it was not percent-encoded.
		text = text[:len(text)-6] + "+" + text[len(text)-5:]
	}
	for _, layout := range otherTimes {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return at.UTC().Truncate(time.Microsecond), at.UTC().Year() >= 0 && at.UTC().Year() <= 9999
		}
	}
	return time.Time{}, false
}

// parseLast parses a length of time (decision 5).
func (r WindowRule) parseLast(text string) (time.Duration, error) {
	n, unit, ok := splitLength(text)
	switch {
	case !ok || n == 0:
		return 0, r.invalidLast(text)
	case n > uint64(r.Max/unit): //nolint:gosec // Both are positive.
		return 0, NewError(CodeTimeRangeTooWide, "last", fmt.Sprintf(
			"The window is wider than %d days. Ask for last=%dd, and for older readings with from and to.",
			r.maxDays(), r.maxDays()))
	}
	return time.Duration(n) * unit, nil //nolint:gosec // Not more than Max.
}

// splitLength splits a length of time into its decimal integer, which may be 0, and its unit m, h or d. An integer that
// is too large becomes the largest one.
func splitLength(text string) (n uint64, unit time.Duration, ok bool) {
	if len(text) < 2 || !allDigits(text[:len(text)-1]) {
		return 0, 0, false
	}
	unit, ok = map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, _ = strconv.ParseUint(text[:len(text)-1], 10, 64) // It fails only if the integer is too large.
	return n, unit, ok
}

// ParseLength parses a positive length of time that is at most longest.
func ParseLength(text string, longest time.Duration) (time.Duration, bool) {
	n, unit, ok := splitLength(text)
	if !ok || n < 1 || n > uint64(longest/unit) { //nolint:gosec // Both are positive.
		return 0, false
	}
	return time.Duration(n) * unit, true //nolint:gosec // Not more than longest.
}

func (r WindowRule) isLast(text string) bool {
	_, err := r.parseLast(text)
	return err == nil
}

// otherUnits are common units that are refused, in units of decision 5 a.
var otherUnits = map[string]struct {
	factor int
	unit   string
}{
	"m": {1, "m"}, "min": {1, "m"}, "minute": {1, "m"}, "minutes": {1, "m"},
	"h": {1, "h"}, "hr": {1, "h"}, "hour": {1, "h"}, "hours": {1, "h"},
	"d": {1, "d"}, "day": {1, "d"}, "days": {1, "d"}, "w": {7, "d"}, "week": {7, "d"}, "weeks": {7, "d"},
}

// invalidLast returns the error for a malformed value of last, with the value that was probably meant.
func (r WindowRule) invalidLast(text string) error {
	example := "for example last=90m, last=24h or last=7d"
	name := strings.TrimLeft(text, "0123456789")
	unit, ok := otherUnits[strings.ToLower(strings.TrimSpace(name))]
	if n, err := strconv.ParseUint(text[:len(text)-len(name)], 10, 16); ok && err == nil {
		meant := strconv.Itoa(int(n)*unit.factor) + unit.unit
		if meant != text && r.isLast(meant) {
			example = "such as last=" + meant
		}
	}
	return NewError(CodeTimeRangeInvalid, "last",
		"last must be a whole number above 0 followed by m, h or d, "+example+".")
}

// Buckets returns how many 5-minute buckets start inside the window.
func (w Window) Buckets() int {
	from, to := BucketFrom(w.From), BucketFrom(w.To)
	// The window of an assignment may be longer than a Duration.
	return max(0, int((to.Unix()-from.Unix())/int64(BucketLength/time.Second)))
}

// BucketFrom returns the start of the first 5-minute bucket that does not start before a time.
func BucketFrom(at time.Time) time.Time {
	bucket := BucketOf(at)
	if bucket.Before(at) {
		return bucket.Add(BucketLength)
	}
	return bucket
}
