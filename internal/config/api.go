package config

import (
	"cmp"

	"github.com/rs/zerolog"
)

// API configures the processes that answer clients.
type API struct {
	Database
	Site
	Log
	OpsAddr string `default:"127.0.0.1:9080" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:""`
}

// Validate checks what can be checked without connecting.
func (c *API) Validate() error {
	return cmp.Or(
		c.Database.Validate(),
		c.Site.Validate(),
		c.Log.Validate(),
		check("ops-addr", c.OpsAddr, address),
	)
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *API) MarshalZerologObject(e *zerolog.Event) {
	c.Database.MarshalZerologObject(e)
	c.Site.MarshalZerologObject(e)
	e.Str("ops_addr", c.OpsAddr).Str("log_level", c.LogLevel)
}
