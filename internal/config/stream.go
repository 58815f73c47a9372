package config

import (
	"math"
	"strconv"
	"time"

	"github.com/rs/zerolog"
)

// Stream says how the stream of uploads is made and kept.
type Stream struct {
	StreamReplicas int    `default:"1"    help:"Copies of the stream: 1, or 3 or 5 in a cluster." placeholder:"N" setting:""`
	StreamMaxBytes string `default:"8GiB" help:"Size at which the stream takes no more uploads." placeholder:"SIZE" setting:""`
	StreamKeep     string `default:"7d"   help:"How long uploads stay in the stream once they are stored, for a replay after a restore." placeholder:"TIME" setting:""`
}

// leastStream is the least size of the stream: a few uploads of the largest kind.
const leastStream = 16 << 20

// Validate checks what can be checked without connecting.
func (c *Stream) Validate() error {
	if c.StreamReplicas != 1 && c.StreamReplicas != 3 && c.StreamReplicas != 5 {
		return &ValueError{Flag: "stream-replicas", Reason: "must be 1, 3 or 5"}
	}
	if bytes, ok := parseSize(c.StreamMaxBytes); !ok || bytes < leastStream {
		return &ValueError{
			Flag:   "stream-max-bytes",
			Reason: "must be a whole number of MiB, GiB or TiB, from 16MiB on, for example 8GiB",
		}
	}
	if keep, ok := parseLength(c.StreamKeep); !ok || keep <= 0 {
		return &ValueError{
			Flag:   "stream-keep",
			Reason: "must be a whole number above 0 followed by m, h or d, for example 7d",
		}
	}
	return nil
}

// MaxBytes is the size at which the stream takes no more.
func (c *Stream) MaxBytes() int64 {
	bytes, _ := parseSize(c.StreamMaxBytes)
	return bytes
}

// Keep is how long what is stored stays in the stream.
func (c *Stream) Keep() time.Duration {
	keep, _ := parseLength(c.StreamKeep)
	return keep
}

// MarshalZerologObject logs the configuration.
func (c *Stream) MarshalZerologObject(e *zerolog.Event) {
	e.Int("stream_replicas", c.StreamReplicas).Str("stream_max_bytes", c.StreamMaxBytes).Str("stream_keep", c.StreamKeep)
}

var sizes = map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

func parseSize(text string) (bytes int64, ok bool) {
	if len(text) <= len("MiB") {
		return 0, false
	}
	return scaled(text[:len(text)-3], sizes[text[len(text)-3:]])
}

var lengths = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func parseLength(text string) (length time.Duration, ok bool) {
	if len(text) < len("1d") {
		return 0, false
	}
	n, ok := scaled(text[:len(text)-1], int64(lengths[text[len(text)-1:]]))
	return time.Duration(n), ok
}

// scaled reads a whole number of units; no unit is 0.
func scaled(digits string, unit int64) (n int64, ok bool) {
	parsed, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || unit == 0 {
		return 0, false
	}
	n = int64(parsed)
	return n * unit, n <= math.MaxInt64/unit
}
