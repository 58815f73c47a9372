package config

import (
	"errors"

	"github.com/rs/zerolog"
)

// Database is where the tables are.
type Database struct {
	DatabaseURL string `setting:"" help:"URL of the TimescaleDB database, postgres://user:password@host:5432/name." name:"database-url" placeholder:"URL"`
}

// Validate checks what can be checked without connecting.
func (c *Database) Validate() error { return check("database-url", c.DatabaseURL, databaseURL) }

// Malformed is the problem of a database URL that the driver alone could find
// fault with. It does not repeat the driver's words, which may hold the password.
func (c *Database) Malformed() error {
	return &ValueError{Flag: "database-url", Reason: errDatabaseURL.Error()}
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Database) MarshalZerologObject(e *zerolog.Event) {
	e.Str("database_url", Mask(c.DatabaseURL))
}

// Queue is where the stream of uploads is.
type Queue struct {
	NATSURL string `setting:"" help:"URL of NATS with JetStream, nats://host:4222." name:"nats-url" placeholder:"URL"`
}

// Validate checks what can be checked without connecting.
func (c *Queue) Validate() error { return check("nats-url", c.NATSURL, queueURL) }

// Malformed is the problem of a NATS URL that the client alone could find fault with.
func (c *Queue) Malformed() error {
	return &ValueError{Flag: "nats-url", Reason: errQueueURL.Error()}
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Queue) MarshalZerologObject(e *zerolog.Event) { e.Str("nats_url", Mask(c.NATSURL)) }

// Log says how much is logged.
type Log struct {
	LogLevel string `default:"info" setting:"" help:"Least level that is logged: trace, debug, info, warn, error." placeholder:"LEVEL"`
}

var errLevel = errors.New("must be one of trace, debug, info, warn, error")

// Validate checks the level's name.
func (c *Log) Validate() error { return check("log-level", c.LogLevel, logLevel) }

func logLevel(value string) error {
	if level, err := zerolog.ParseLevel(value); err != nil || level < zerolog.TraceLevel || level > zerolog.ErrorLevel {
		return errLevel
	}
	return nil
}

// Level is the level as the logger knows it; a level that Validate refuses is info.
func (c *Log) Level() zerolog.Level {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		return zerolog.InfoLevel
	}
	return level
}
