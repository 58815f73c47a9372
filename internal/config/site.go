package config

import (
	"cmp"
	"net"
	"strings"

	"github.com/rs/zerolog"
)

// Site is where clients reach the API and its documentation. Every process that
// answers them knows it: errors name their page.
type Site struct {
	APIAddr   string `default:"127.0.0.1:8080" help:"Address the API listens on." placeholder:"HOST:PORT" setting:""`
	PublicURL string `help:"Address that clients reach, without /v1; http://API_ADDR by default." name:"public-url" placeholder:"URL" setting:""`
	DocsURL   string `help:"Address of the documentation; PUBLIC_URL/docs by default." name:"docs-url" placeholder:"URL" setting:""`
}

// Validate checks what can be checked without connecting.
func (c *Site) Validate() error {
	return cmp.Or(
		check("api-addr", c.APIAddr, address),
		check("public-url", c.PublicURL, optional(publicURL)),
		check("docs-url", c.DocsURL, optional(webURL)),
	)
}

// Public is the address that clients reach, without /v1 and without a slash at
// its end. The port of a bound address stands in where any free one was asked
// for; an empty one is not known.
func (c *Site) Public(bound string) string {
	return strings.TrimRight(cmp.Or(c.PublicURL, reachable(c.APIAddr, bound)), "/")
}

// Docs is the address of the documentation, without a slash at its end.
func (c *Site) Docs(bound string) string {
	return strings.TrimRight(cmp.Or(c.DocsURL, c.Public(bound)+"/docs"), "/")
}

// MarshalZerologObject logs the configuration.
func (c *Site) MarshalZerologObject(e *zerolog.Event) {
	e.Str("api_addr", c.APIAddr).Str("public_url", c.PublicURL).Str("docs_url", c.DocsURL)
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
	return "http://" + net.JoinHostPort(localHost(host), port)
}
