package config

import (
	"cmp"
	"time"

	"github.com/rs/zerolog"
)

// Rejects says how long and how many of the uploads that could not be stored
// are kept for an operator. An empty value is the default.
type Rejects struct {
	RejectsKeep     string `default:"30d"  help:"How long rejects are kept; longer than --stream-keep." placeholder:"TIME" setting:""`
	RejectsMaxBytes string `default:"1GiB" help:"Size beyond which the oldest rejects go, counted and logged." placeholder:"SIZE" setting:""`
}

// The defaults, for those who do not come from the command line.
const (
	defaultRejectsKeep     = "30d"
	defaultRejectsMaxBytes = "1GiB"
)

// validateRejects checks the values beside those of the stream: a replay of the stream
// must find every reject that it made before, or it would make it again.
func (c *Rejects) validateRejects(stream *Stream) error {
	if keep, ok := parseLength(cmp.Or(c.RejectsKeep, defaultRejectsKeep)); !ok || keep <= stream.Keep() {
		return &ValueError{
			Flag:   "rejects-keep",
			Reason: "must be a whole number followed by m, h or d, for example 30d, and longer than --stream-keep (STREAM_KEEP)",
		}
	}
	if bytes, ok := parseSize(cmp.Or(c.RejectsMaxBytes, defaultRejectsMaxBytes)); !ok || bytes <= 0 {
		return &ValueError{
			Flag:   "rejects-max-bytes",
			Reason: "must be a whole number above 0 of MiB, GiB or TiB, for example 1GiB",
		}
	}
	return nil
}

// KeepRejects is how long rejects are kept.
func (c *Rejects) KeepRejects() time.Duration {
	keep, _ := parseLength(cmp.Or(c.RejectsKeep, defaultRejectsKeep))
	return keep
}

// MaxRejectBytes is the size beyond which the oldest rejects go.
func (c *Rejects) MaxRejectBytes() int64 {
	bytes, _ := parseSize(cmp.Or(c.RejectsMaxBytes, defaultRejectsMaxBytes))
	return bytes
}

// MarshalZerologObject logs the configuration.
func (c *Rejects) MarshalZerologObject(e *zerolog.Event) {
	e.Str("rejects_keep", cmp.Or(c.RejectsKeep, defaultRejectsKeep)).
		Str("rejects_max_bytes", cmp.Or(c.RejectsMaxBytes, defaultRejectsMaxBytes))
}
