package cli

import (
	"fmt"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

// The types of flags follow the rules of the API. An invalid value is a usage error; the parser adds the
// name of the flag.

// Instant is a time in the strict form of the API (time format rule, decision 2).
type Instant time.Time

// UnmarshalText parses a time.
func (v *Instant) UnmarshalText(text []byte) error {
	at, ok := roomsensor.ParseTime(string(text))
	if !ok {
		return fmt.Errorf("%q is not a UTC time with seconds and Z, for example 2026-01-31T08:00:00Z", text)
	}
	*v = Instant(at)
	return nil
}

// Optional returns the time of an optional flag; nil if it is not given.
func (v *Instant) Optional() *time.Time { return (*time.Time)(v) }

// HardwareID is the serial number of a unit.
type HardwareID string

// UnmarshalText checks a hardware id.
func (v *HardwareID) UnmarshalText(text []byte) error {
	if !roomsensor.IsHardwareID(string(text)) {
		return fmt.Errorf("%q is not a hardware id: dev: and 1 to 20 digits, for example dev:864475046552567. "+
			"roomsensor device list shows that of a unit with an alias", text)
	}
	*v = HardwareID(text)
	return nil
}

// Optional returns the id of an optional flag; nil if it is not given.
func (v *HardwareID) Optional() *string { return (*string)(v) }

// Edge is the start or end of a period: a time as of an Instant, or a date, which is its first instant in UTC.
type Edge time.Time

// UnmarshalText parses a time or a date.
func (v *Edge) UnmarshalText(text []byte) error {
	at, ok := roomsensor.ParseTime(string(text))
	if date, err := time.Parse(time.DateOnly, string(text)); err == nil {
		at, ok = date, true
	}
	if !ok {
		return fmt.Errorf("%q is neither a UTC time with seconds and Z nor a date, "+
			"for example 2026-01-31T08:00:00Z or 2026-01-31", text)
	}
	*v = Edge(at)
	return nil
}

// Optional returns the time of an optional flag; nil if it is not given.
func (v *Edge) Optional() *time.Time { return (*time.Time)(v) }

// Period is a length of time in the form of the API: whole minutes, hours or days.
type Period time.Duration

// UnmarshalText parses a length of time.
func (v *Period) UnmarshalText(text []byte) error {
	var d config.Duration
	if err := d.UnmarshalText(text); err != nil || time.Duration(d)%time.Minute != 0 {
		return fmt.Errorf("%q is not a length in whole minutes, hours or days, for example 90m, 24h or 7d", text)
	}
	*v = Period(d)
	return nil
}

// OrZero returns the duration of an optional flag; 0 if it is not given.
func OrZero[D config.Duration | Period](d *D) time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}
