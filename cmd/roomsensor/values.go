package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
)

// The types of the operator's flags follow the rules of the API. An invalid value is a usage error; the parser adds the
// name of the flag.

// alias is the name with which a sender names a unit (alias rule, A12.1).
type alias string

// UnmarshalText checks an alias.
func (v *alias) UnmarshalText(text []byte) error {
	if err := roomsensor.CheckAlias(string(text)); err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	*v = alias(text)
	return nil
}

// email is the address of a person.
type email string

// UnmarshalText checks an address.
func (v *email) UnmarshalText(text []byte) error {
	if err := roomsensor.CheckEmail(string(text)); err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	*v = email(text)
	return nil
}

// keyID is the public part of a key.
type keyID string

const errKeyID cli.UsageError = "the value is not a key_id. Give the part between the two underscores of the key, " +
	"as the list of the team's keys shows it"

// UnmarshalText checks a key id. It refuses a whole key, because a secret must not be stored in a shell's history.
func (v *keyID) UnmarshalText(text []byte) error {
	if len(text) == 0 || bytes.ContainsAny(text, "_ ") || !roomsensor.IsPlain(string(text)) {
		return errKeyID
	}
	*v = keyID(text)
	return nil
}

// timeZone is an IANA time zone.
type timeZone struct{ *time.Location }

// UnmarshalText loads a time zone.
func (v *timeZone) UnmarshalText(text []byte) error {
	zone, ok := timezone.Load(string(text))
	if !ok {
		return fmt.Errorf("%q is not an IANA time zone, such as UTC or Europe/Berlin; letter case matters", text)
	}
	v.Location = zone
	return nil
}

// nightHours are when nights begin and end.
type nightHours struct{ airquality.NightHours }

// UnmarshalText parses the form 22:00-07:00.
func (v *nightHours) UnmarshalText(text []byte) (err error) {
	v.NightHours, err = airquality.ParseNightHours(string(text))
	return withoutCode(err)
}

// limit has the limits of one metric, written as METRIC=LOW..HIGH.
type limit struct {
	airquality.Limit

	metric roomsensor.Metric
}

// UnmarshalText parses METRIC=LOW..HIGH.
func (v *limit) UnmarshalText(text []byte) (err error) {
	name, ends, ok := strings.Cut(string(text), "=")
	metric, known := roomsensor.MetricNamed(name)
	if !ok || !known {
		return fmt.Errorf("%q is not METRIC=LOW..HIGH, for example co2_ppm=..1000/1400. %s", text, cli.KnownMetrics)
	}
	v.metric = metric
	v.Limit, err = airquality.ParseLimit(metric, ends)
	return withoutCode(err)
}

// retention is for how many days readings are kept; nil: this sets no limit.
type retention struct{ days *int32 }

// UnmarshalText parses a duration of whole days, or none.
func (v *retention) UnmarshalText(text []byte) error {
	if v.days = nil; string(text) == "none" {
		return nil
	}
	var d config.Duration
	if err := d.UnmarshalText(text); err != nil || time.Duration(d)%(24*time.Hour) != 0 {
		return fmt.Errorf("%q is not a number of whole days, for example 400d, or the word none", text)
	}
	v.days = new(int32(time.Duration(d) / (24 * time.Hour))) //nolint:gosec // At most 100 years.
	return nil
}

// withoutCode returns the message of an error of a rule alone, without the period that the parser adds.
func withoutCode(err error) error {
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok {
		return errors.New(strings.TrimSuffix(rule.Message, "."))
	}
	return err
}
