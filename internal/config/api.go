package config

import (
	"cmp"
	"net"
	"strings"

	"github.com/rs/zerolog"
)

// API configures the processes that answer clients.
type API struct {
	Database
	Log
	APIAddr   string `default:"127.0.0.1:8080" setting:"" help:"Address the API listens on."                          name:"api-addr"   placeholder:"HOST:PORT"`
	OpsAddr   string `default:"127.0.0.1:9080" setting:"" help:"Address of health checks, metrics and profiles."        name:"ops-addr"   placeholder:"HOST:PORT"`
	PublicURL string `setting:"" help:"Address that clients reach, without /v1; http://API_ADDR by default." name:"public-url" placeholder:"URL"`
	DocsURL   string `setting:"" help:"Address of the documentation; PUBLIC_URL/docs by default."            name:"docs-url"   placeholder:"URL"`
}

// Validate checks what can be checked without connecting.
func (c *API) Validate() error {
	return cmp.Or(
		c.Database.Validate(),
		c.Log.Validate(),
		check("api-addr", c.APIAddr, address),
		check("ops-addr", c.OpsAddr, address),
		check("public-url", c.PublicURL, optional(publicURL)),
		check("docs-url", c.DocsURL, optional(webURL)),
	)
}

// Public is the address that clients reach, without /v1 and without a slash at
// its end. The bound address stands in where none was given.
func (c *API) Public(bound string) string {
	return strings.TrimRight(cmp.Or(c.PublicURL, reachable(c.APIAddr, bound)), "/")
}

// Docs is the address of the documentation, without a slash at its end.
func (c *API) Docs(bound string) string {
	return strings.TrimRight(cmp.Or(c.DocsURL, c.Public(bound)+"/docs"), "/")
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *API) MarshalZerologObject(e *zerolog.Event) {
	c.Database.MarshalZerologObject(e)
	e.Str("api_addr", c.APIAddr).Str("ops_addr", c.OpsAddr).
		Str("public_url", c.PublicURL).Str("docs_url", c.DocsURL).Str("log_level", c.LogLevel)
}

// reachable is where a listener is reached from its own machine: as it was
// configured, with the bound port where any free one was asked for.
func reachable(configured, bound string) string {
	host, port, err := net.SplitHostPort(configured)
	if err != nil {
		return "http://" + configured
	}
	if _, boundPort, err := net.SplitHostPort(bound); err == nil && port == "0" {
		port = boundPort
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
