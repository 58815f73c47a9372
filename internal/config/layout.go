package config

import (
	"time"

	"github.com/rs/zerolog"
)

// Layout says how old readings lie in the database. Both are policies of
// TimescaleDB's Community edition; the Apache edition has neither.
type Layout struct {
	ColumnstoreAfter string `default:"30d"   help:"Age from which readings are kept as columns, longer than any device buffers them, or never (Community edition)." placeholder:"TIME" setting:""`
	ReadingsKeep     string `default:"never" help:"Age at which readings are dropped for good, or never (Community edition)." placeholder:"TIME" setting:""`
}

// never is the age that nothing reaches.
const never = "never"

// leastLayout is the least age for both: below a day, what devices still send
// would be moved or dropped under way.
const leastLayout = 24 * time.Hour

// DefaultLayout is the layout of a process that is not told another.
func DefaultLayout() Layout { return Layout{ColumnstoreAfter: "30d", ReadingsKeep: never} }

// Validate checks both ages.
func (c *Layout) Validate() error {
	for flag, text := range map[string]string{"columnstore-after": c.ColumnstoreAfter, "readings-keep": c.ReadingsKeep} {
		if age, ok := parseLength(text); text != never && (!ok || age < leastLayout) {
			return &ValueError{
				Flag:   flag,
				Reason: "must be a whole number followed by m, h or d, at least 1d, or the word never",
			}
		}
	}
	return nil
}

// Columnstore is the age from which readings are kept as columns; 0 is never.
func (c *Layout) Columnstore() time.Duration {
	age, _ := parseLength(c.ColumnstoreAfter)
	return age
}

// Drop is the age at which readings are dropped; 0 is never.
func (c *Layout) Drop() time.Duration {
	age, _ := parseLength(c.ReadingsKeep)
	return age
}

// Migration configures the migrations upwards.
type Migration struct {
	Database
	Layout
}

// Validate checks what can be checked without connecting.
func (c *Migration) Validate() error {
	if err := c.Database.Validate(); err != nil {
		return err
	}
	return c.Layout.Validate()
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Migration) MarshalZerologObject(e *zerolog.Event) {
	c.Database.MarshalZerologObject(e)
	e.Str("columnstore_after", c.ColumnstoreAfter).Str("readings_keep", c.ReadingsKeep)
}
