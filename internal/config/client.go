package config

import (
	"errors"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

// Client is where a client of the API reaches it, and its key.
type Client struct {
	RoomsensorURL    string `help:"Base URL of the service." name:"roomsensor-url" placeholder:"URL" setting:"" rule:"service-url"`
	RoomsensorAPIKey Secret `help:"API key, rsk_<id>_<secret>." name:"roomsensor-api-key" placeholder:"KEY" setting:"" rule:"api-key"`
}

// Sender is where a sender of uploads reaches the receiver, and its upload credential.
type Sender struct {
	ReceiverSite
	IngestKey Secret `help:"Ingest key of the team, rsi_<id>_<secret>." implied:"none, which is enough for a dry run" name:"ingest-key" placeholder:"KEY" setting:"" rule:"ingest-key"`
}

// Validate checks the form of the URL and of the key.
func (c *Sender) Validate() error { return validate(c) }

// MissingKey returns the error of a command that needs the key.
func (*Sender) MissingKey() error {
	return &ValueError{Flag: "ingest-key", Reason: errIngestKeyMissing.Error()}
}

// Probe configures the process that checks the service from outside, as a device and a client of the API.
type Probe struct {
	Client
	ReceiverSite
	Log
	IngestKey Secret   `help:"Ingest key of the same team, rsi_<id>_<secret>." name:"ingest-key" placeholder:"KEY" setting:"" rule:"ingest-key"`
	Interval  Duration `default:"1m" help:"Time from one check to the next." placeholder:"DURATION"`
	Timeout   Duration `default:"30s" help:"Time after which a check has failed." placeholder:"DURATION"`
	OpsAddr   string   `default:"127.0.0.1:9086" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks everything that can be checked without connecting.
func (c *Probe) Validate() error { return validate(c) }

// MarshalZerologObject logs the configuration without its secrets.
func (c *Probe) MarshalZerologObject(e *zerolog.Event) { logSettings(e, c) }

var (
	errServiceMissing = errors.New("is missing. Give the base URL of the service, for example https://sensors.example.com")
	errServiceURL     = errors.New("is not the base URL of a service. It has the form https://sensors.example.com, " +
		"with or without /v1")
	errKeyMissing = errors.New("is missing. Give an API key; who runs the service creates it with " +
		"'roomsensor key create'")
	errIngestKeyGiven   = errors.New("is an ingest key, with which devices upload. Give an API key, rsk_<id>_<secret>")
	errIngestKeyMissing = errors.New("is missing. Give an ingest key; who runs the service creates it with " +
		"'roomsensor ingest-key create'")
	errIngestKey     = errors.New("is not a complete ingest key, rsi_<id>_<secret>. Copy it again")
	errIncompleteKey = errors.New("is not a complete API key, rsk_<id>_<secret>. Copy it again")
)

// Validate checks the form of the URL and of the key.
func (c *Client) Validate() error { return validate(c) }

func serviceURL(value string) error {
	switch {
	case value == "":
		return errServiceMissing
	case webURL(value) != nil:
		return errServiceURL
	}
	return nil
}

func apiKey(value string) error {
	_, _, ingest := roomsensor.ParseKey(roomsensor.IngestKey, value)
	_, _, ok := roomsensor.ParseKey(roomsensor.APIKey, value)
	switch {
	case value == "":
		return errKeyMissing
	case ingest:
		return errIngestKeyGiven
	case !ok:
		return errIncompleteKey
	}
	return nil
}

func ingestKey(value string) error {
	if value == "" {
		return errIngestKeyMissing
	}
	if _, _, ok := roomsensor.ParseKey(roomsensor.IngestKey, value); !ok {
		return errIngestKey
	}
	return nil
}
