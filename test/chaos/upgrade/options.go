package upgrade

import (
	"errors"
	"time"

	"roomsensor/test/harness"
)

// Options describe a trial. Use Full or Short and change single fields. The tags are the flags of the command line.
type Options struct {
	harness.Options

	// Base is the old version.
	Base     string        `json:"base" help:"Commit or tag of the old version (default: the newest tag before this commit, otherwise the last published commit)." placeholder:"COMMIT"`
	Readings int           `json:"readings" help:"Minimum of distinct readings in the uploads that are due within the span." placeholder:"N"`
	Span     time.Duration `json:"span_ns" help:"Period over which uploads are due; it must be longer than the stages." placeholder:"DURATION"`
	Reads    int           `json:"reads" help:"Calls of the API per second." placeholder:"N"`
	// Hold is how long a mixture of versions serves before the next change.
	Hold time.Duration `json:"hold_ns" help:"How long each mixture of versions serves." placeholder:"DURATION"`
	// Drain is the DRAIN_DELAY of the processes.
	Drain time.Duration `json:"drain_ns" kong:"-"`
}

// Full returns the options of the trial that docs/operate/upgrades.md describes.
func Full(seed uint64) Options {
	return Options{
		Options:  harness.Options{Seed: seed, Units: 60, Teams: 3},
		Readings: 120_000, Span: 10 * time.Minute, Reads: 20, Hold: 20 * time.Second, Drain: 5 * time.Second,
	}
}

// Short returns the options of a trial that holds each mixture of versions for a few seconds only.
func Short(seed uint64) Options {
	o := Full(seed)
	o.Hold, o.Drain = 3*time.Second, 2*time.Second
	return o
}

var errOptions = errors.New(
	"a trial needs readings, a span, reads, a drain delay of 1s at least, 2 teams and a unit per team")

// Validate returns an error for options with which nothing can be proven.
func (o *Options) Validate() error {
	if o.Readings <= 0 || o.Span <= 0 || o.Reads <= 0 || o.Hold < 0 || o.Drain < time.Second || o.Teams < 2 ||
		o.Units < o.Teams {
		return errOptions
	}
	return nil
}
