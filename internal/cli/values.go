package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

// The types of flags follow the rules of the API. An invalid value is a usage error; the parser adds the
// name of the flag.

// ID is a UUID in its form of 36 characters (identifier rule, decision 7).
type ID uuid.UUID

// UnmarshalText parses an id.
func (v *ID) UnmarshalText(text []byte) error {
	parsed, err := uuid.Parse(string(text))
	if err != nil || len(text) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return fmt.Errorf("%q is not an id. Ids have 36 characters, for example 6fa459ea-ee8a-4ca4-894e-db77e160355e", text)
	}
	*v = ID(parsed)
	return nil
}

// Name is a name or a label (name rule, decision 20).
type Name string

// UnmarshalText checks a name.
func (v *Name) UnmarshalText(text []byte) error {
	if err := roomsensor.CheckName(string(text)); err != nil {
		return fmt.Errorf("the text %w", err)
	}
	*v = Name(text)
	return nil
}

// Optional returns the name of an optional flag; nil if it is not given.
func (v *Name) Optional() *string { return (*string)(v) }

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

// Metadata is metadata, whose flag is given as KEY=VALUE for each key (metadata rule, decision 21).
type Metadata map[string]string

// UnmarshalText adds KEY=VALUE; the value may contain more equals signs.
func (v Metadata) UnmarshalText(text []byte) error {
	key, value, ok := strings.Cut(string(text), "=")
	if !ok {
		return fmt.Errorf("%q is not KEY=VALUE", text)
	}
	if _, duplicate := v[key]; duplicate {
		return fmt.Errorf("the key %s is given twice. Give each key once", key)
	}
	v[key] = value
	return roomsensor.CheckMetadata(v)
}

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

// KnownMetrics is a sentence of errors, without its period: the parser adds that.
const KnownMetrics = "The metrics are co2_ppm, temp_c, humidity_pct, lux and spl_db"
