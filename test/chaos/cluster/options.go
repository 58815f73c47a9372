package cluster

import (
	"errors"
	"time"

	"roomsensor/test/harness"
)

// Options describe a trial. Use Full or Short and change single fields. The tags are the flags of the command line.
type Options struct {
	harness.Options

	Rounds int           `json:"rounds" help:"Number of times that each fault happens." placeholder:"N"`
	Rate   int           `json:"readings_per_second" help:"Approximate number of readings to send per second." placeholder:"N"`
	Down   time.Duration `json:"down_ns" help:"Time for which a member stays dead or disconnected." placeholder:"DURATION"`
	Detect time.Duration `json:"detect_ns" help:"Time from the loss of a primary to the promotion of its standby." placeholder:"DURATION"`
	// Rest is the time without a fault between two faults.
	Rest         time.Duration `json:"rest_ns" kong:"-"`
	Only         string        `json:"only,omitempty" help:"Run only the faults whose names contain this text, such as primary." placeholder:"TEXT"`
	Asynchronous bool          `json:"asynchronous" help:"Negative control: commits do not wait for the standby, which is disconnected before the primary dies, and the trial must fail."`
	// Images are those that the trial found.
	Images Images `json:"images" kong:"-"`
}

// Full returns the options of the trial that docs/operate/cluster.md describes.
func Full(seed uint64) Options {
	return Options{
		Options: harness.Options{Seed: seed, Units: 108, Teams: 3},
		Rounds:  2, Rate: 250, Down: 20 * time.Second, Detect: 5 * time.Second, Rest: 10 * time.Second,
	}
}

// Short returns the options of a trial with every kind of fault once and shorter pauses.
func Short(seed uint64) Options {
	return Options{
		Options: harness.Options{Seed: seed, Units: 24, Teams: 2, AckWait: 5 * time.Second},
		Rounds:  1, Rate: 200, Down: 8 * time.Second, Detect: time.Second, Rest: 2 * time.Second,
	}
}

var errOptions = errors.New("a trial needs a fault, a round, readings, 2 teams and a unit per team")

// Validate returns an error for options with which nothing can be proven.
func (o *Options) Validate() error {
	if len(o.kinds()) == 0 || o.Rounds <= 0 || o.Rate <= 0 || o.Teams < 2 || o.Units < o.Teams {
		return errOptions
	}
	return nil
}
