package config

import "strings"

// ReceiverSite is where senders reach the receiver. The commands that print the URL of a source need it.
type ReceiverSite struct {
	IngestURL string `default:"http://127.0.0.1:8081" help:"Address of the receiver for senders." name:"ingest-url" placeholder:"URL" setting:"" rule:"service-url"`
}

// Validate checks the form of the address.
func (c *ReceiverSite) Validate() error { return validate(c) }

// SourceURL returns the URL to which the sender of a source posts.
func (c *ReceiverSite) SourceURL(sourceID string) string {
	return strings.TrimRight(c.IngestURL, "/") + "/sources/" + sourceID
}
