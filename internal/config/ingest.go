package config

import (
	"cmp"
	"errors"

	"github.com/rs/zerolog"
)

// Ingest configures the processes that receive and store uploads.
type Ingest struct {
	Database
	Queue
	Stream
	Rejects
	Maintenance
	Site
	Log
	IngestAddr string `default:"127.0.0.1:8081" help:"Address the receiver listens on." placeholder:"HOST:PORT" setting:""`
	OpsAddr    string `default:"127.0.0.1:9081" help:"Address of health checks and metrics." placeholder:"HOST:PORT" setting:""`
	NoReceiver bool   `help:"Receive no uploads over HTTP: be a worker alone." setting:""`
	NoWorker   bool   `help:"Store nothing: be a receiver alone." setting:""`
}

var errNothingToDo = errors.New("leaves nothing to do together with --no-receiver (NO_RECEIVER). " +
	"Leave one of the two out")

// Validate checks what can be checked without connecting.
func (c *Ingest) Validate() error {
	if c.NoReceiver && c.NoWorker {
		return &ValueError{Flag: "no-worker", Reason: errNothingToDo.Error()}
	}
	return cmp.Or(
		c.Database.Validate(),
		c.Queue.Validate(),
		c.Stream.Validate(),
		c.validateRejects(&c.Stream),
		c.validateMaintenance(),
		c.Site.Validate(),
		c.Log.Validate(),
		check("ingest-addr", c.IngestAddr, address),
		check("ops-addr", c.OpsAddr, address),
	)
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Ingest) MarshalZerologObject(e *zerolog.Event) {
	c.Database.MarshalZerologObject(e)
	c.Queue.MarshalZerologObject(e)
	c.Stream.MarshalZerologObject(e)
	c.Rejects.MarshalZerologObject(e)
	c.Maintenance.MarshalZerologObject(e)
	c.Site.MarshalZerologObject(e)
	e.Str("ingest_addr", c.IngestAddr).Str("ops_addr", c.OpsAddr).Str("log_level", c.LogLevel).
		Bool("receiver", !c.NoReceiver).Bool("worker", !c.NoWorker)
}
