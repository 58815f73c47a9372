package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// The values that commands take, held to the rules of the API as they are
// read: what breaks one is a usage error, which the parser puts the flag before.

// id is an identifier in its form of 36 characters (decision 7).
type id uuid.UUID

// UnmarshalText reads an id.
func (v *id) UnmarshalText(text []byte) error {
	parsed, err := uuid.Parse(string(text))
	if err != nil || len(text) != len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return fmt.Errorf("%q is not an id. Ids have 36 characters, as in 6fa459ea-ee8a-4ca4-894e-db77e160355e", text)
	}
	*v = id(parsed)
	return nil
}

func (v *id) optional() *uuid.UUID { return (*uuid.UUID)(v) }

// instant is a time in the strict form of the API (decision 2).
type instant time.Time

// UnmarshalText reads a time.
func (v *instant) UnmarshalText(text []byte) error {
	at, ok := roomsensor.ParseTime(string(text))
	if !ok {
		return fmt.Errorf("%q is not a UTC time with seconds and Z. Write it as 2026-01-31T08:00:00Z", text)
	}
	*v = instant(at)
	return nil
}

func (v *instant) optional() *time.Time { return (*time.Time)(v) }

// name is a name or a label (decision 20).
type name string

// UnmarshalText reads a name.
func (v *name) UnmarshalText(text []byte) error {
	if err := roomsensor.CheckName(string(text)); err != nil {
		return fmt.Errorf("the text %w", err)
	}
	*v = name(text)
	return nil
}

func (v *name) optional() *string { return (*string)(v) }

// hardwareID is the serial of a unit.
type hardwareID string

// UnmarshalText reads a serial.
func (v *hardwareID) UnmarshalText(text []byte) error {
	if !roomsensor.IsHardwareID(string(text)) {
		return fmt.Errorf("%q is not a hardware id. It is dev: and 1 to 20 digits, as in dev:864475046552567", text)
	}
	*v = hardwareID(text)
	return nil
}

func (v *hardwareID) optional() *string { return (*string)(v) }

// keyID is the public part of a credential.
type keyID string

// UnmarshalText reads the public part, and refuses a whole credential: it does
// not belong into a shell's history.
func (v *keyID) UnmarshalText(text []byte) error {
	if len(text) == 0 || bytes.ContainsAny(text, "_ ") || !roomsensor.IsPlain(string(text)) {
		return errKeyID
	}
	*v = keyID(text)
	return nil
}

// tag is one entry of the metadata, as key=value.
type tag struct{ key, value string }

// UnmarshalText reads key=value; the value may hold further equals signs.
func (v *tag) UnmarshalText(text []byte) error {
	key, value, ok := strings.Cut(string(text), "=")
	if !ok {
		return fmt.Errorf("%q is not key=value", text)
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

// tags unites entries of the metadata (decision 21).
func tags(entries []tag) (map[string]string, error) {
	united := make(map[string]string, len(entries))
	for _, entry := range entries {
		if _, twice := united[entry.key]; twice {
			return nil, usagef("--metadata: the key %s is given twice. Give each key once.", entry.key)
		}
		united[entry.key] = entry.value
	}
	if err := roomsensor.CheckMetadata(united); err != nil {
		return nil, usagef("--metadata %v.", err)
	}
	return united, nil
}

const errKeyID usageError = "it is not a key_id. Give the part between the two underscores of the key, " +
	"as the list of a team's keys shows it"
