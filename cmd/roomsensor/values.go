package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
)

// The types of the operator's flags follow the rules of the API. An invalid value is a usage error; the parser adds the
// name of the flag.

// id is a UUID in its form of 36 characters (identifier rule, decision 7).
type id uuid.UUID

// UnmarshalText parses an id.
func (v *id) UnmarshalText(text []byte) error {
	parsed, err := uuid.Parse(string(text))
	if err != nil || len(text) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return fmt.Errorf("%q is not an id. Ids have 36 characters, for example 6fa459ea-ee8a-4ca4-894e-db77e160355e", text)
	}
	*v = id(parsed)
	return nil
}

// date is a date of the calendar.
type date time.Time

// UnmarshalText parses a date.
func (v *date) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a date, for example 2026-01-31", text)
	}
	*v = date(parsed)
	return nil
}

// name is a name or a label (name rule, decision 20).
type name string

// UnmarshalText checks a name.
func (v *name) UnmarshalText(text []byte) error {
	if err := roomsensor.CheckName(string(text)); err != nil {
		return fmt.Errorf("the text %w", err)
	}
	*v = name(text)
	return nil
}

func (v *name) optional() *string { return (*string)(v) }

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

// tag is one entry of the metadata, written as KEY=VALUE.
type tag struct{ key, value string }

// UnmarshalText parses KEY=VALUE; the value may contain more equals signs.
func (v *tag) UnmarshalText(text []byte) error {
	key, value, ok := strings.Cut(string(text), "=")
	if !ok {
		return fmt.Errorf("%q is not KEY=VALUE", text)
	}
	if err := roomsensor.CheckMetadataKey(key); err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	if err := roomsensor.CheckMetadataValue(value); err != nil {
		return fmt.Errorf("the value of %s %w", key, err)
	}
	*v = tag{key, value}
	return nil
}

// metadataOf collects tags into metadata (metadata rule, decision 21).
func metadataOf(tags []tag) (map[string]string, error) {
	metadata := make(map[string]string, len(tags))
	for _, t := range tags {
		if _, duplicate := metadata[t.key]; duplicate {
			return nil, cli.Usagef("--metadata: the key %s is given twice. Give each key once.", t.key)
		}
		metadata[t.key] = t.value
	}
	if err := roomsensor.CheckMetadata(metadata); err != nil {
		return nil, cli.Usagef("--metadata %v.", err)
	}
	return metadata, nil
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

// knownMetrics is a sentence of errors, without its period: the parser adds that.
const knownMetrics = "The metrics are co2_ppm, temp_c, humidity_pct, lux and spl_db"

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
		return fmt.Errorf("%q is not METRIC=LOW..HIGH, for example co2_ppm=..1000/1400. %s", text, knownMetrics)
	}
	v.metric = metric
	v.Limit, err = airquality.ParseLimit(metric, ends)
	return withoutCode(err)
}

// withoutCode returns the message of an error of a rule alone, without the period that the parser adds.
func withoutCode(err error) error {
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok {
		return errors.New(strings.TrimSuffix(rule.Message, "."))
	}
	return err
}
