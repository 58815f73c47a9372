package roomsensor

import (
	"fmt"
	"strconv"
	"time"
)

const (
	// MaxWindow is the widest window that a client may request (spec 8, Time range).
	MaxWindow = 90 * 24 * time.Hour
	// DefaultWindow is the window without any time parameter (spec 4, readings).
	DefaultWindow = 24 * time.Hour
)

// Window is the half-open interval [From, To) of bucket times (decision 3). To is Forever if it has no end yet.
type Window struct {
	From, To time.Time
}

// Intersect returns the overlap of both windows, which may be empty.
func (w Window) Intersect(o Window) Window {
	if o.From.After(w.From) {
		w.From = o.From
	}
	if o.To.Before(w.To) {
		w.To = o.To
	}
	return w
}

// Empty reports whether the window contains no time at all.
func (w Window) Empty() bool { return !w.From.Before(w.To) }

// WindowRequest holds the parsed time parameters of a request. Requests that mean the same are equal, however they were
// written (decision 12). The zero WindowRequest means the default window.
type WindowRequest struct {
	From, To *time.Time
	Last     time.Duration // 0 when not given
}

// IsZero reports whether no time parameter was given.
func (r WindowRequest) IsZero() bool { return r.From == nil && r.To == nil && r.Last == 0 }

// ParseWindow parses the time parameters; nil means that a parameter was not sent. With last, from and to are ignored
// (decision 5). Errors are time_range_invalid and time_range_too_wide with the name of the parameter.
func ParseWindow(from, to, last *string) (WindowRequest, error) {
	if last != nil {
		length, err := parseLast(*last)
		return WindowRequest{Last: length}, err
	}
	var request WindowRequest
	var err error
	if request.From, err = parseInstant("from", from); err != nil {
		return WindowRequest{}, err
	}
	if request.To, err = parseInstant("to", to); err != nil {
		return WindowRequest{}, err
	}
	return request, nil
}

// Resolve returns the window that the request means at now (decisions 3 and 4). Errors are the same as those of
// ParseWindow.
func (r WindowRequest) Resolve(now time.Time) (Window, error) {
	now = now.UTC().Truncate(time.Microsecond)
	switch {
	case r.Last > 0:
		return Window{now.Add(-r.Last), now}, nil
	case r.From == nil && r.To == nil:
		return Window{now.Add(-DefaultWindow), now}, nil
	case r.From == nil:
		return Window{r.To.Add(-DefaultWindow), *r.To}, nil
	case r.To == nil:
		if !r.From.Before(now) {
			return Window{}, NewError(CodeTimeRangeInvalid, "from",
				"from lies in the future and to is missing. Send a from before now, or a to after it.")
		}
		return checkWidth(Window{*r.From, now})
	case !r.From.Before(*r.To):
		return Window{}, NewError(CodeTimeRangeInvalid, "to",
			"to must be later than from. The window is [from, to).")
	}
	return checkWidth(Window{*r.From, *r.To})
}

func checkWidth(w Window) (Window, error) {
	if w.To.Sub(w.From) > MaxWindow {
		return Window{}, tooWide("from")
	}
	return w, nil
}

func tooWide(param string) *Error {
	return NewError(CodeTimeRangeTooWide, param,
		"The window is wider than 90 days. Ask for 90 days or less, and for more in several requests.")
}

func parseInstant(param string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // An absent parameter has no value and is no error.
	}
	at, ok := ParseTime(*text)
	if !ok {
		return nil, NewError(CodeTimeRangeInvalid, param, fmt.Sprintf(
			"%s must be a UTC time with seconds and Z, for example 2026-01-31T08:00:00Z.", param))
	}
	return &at, nil
}

// parseLast parses a positive decimal integer followed by m, h or d (decision 5).
func parseLast(text string) (time.Duration, error) {
	invalid := NewError(CodeTimeRangeInvalid, "last",
		"last must be a whole number above 0 followed by m, h or d, for example 90m, 24h or 7d.")
	if len(text) < 2 || !allDigits(text[:len(text)-1]) {
		return 0, invalid
	}
	unit, ok := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	if !ok {
		return 0, invalid
	}
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
	switch {
	case err != nil || n > int64(MaxWindow/unit):
		return 0, tooWide("last")
	case n == 0:
		return 0, invalid
	}
	return time.Duration(n) * unit, nil
}
