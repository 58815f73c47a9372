package cluster

import (
	"errors"
	"io"
	"time"
)

// Options describe a trial. Use Full or Short and change single fields.
type Options struct {
	Seed   uint64 `json:"seed"`
	Rounds int    `json:"rounds"` // number of times that each fault happens
	// Rate is the approximate number of readings to send per second.
	Rate  int `json:"readings_per_second"`
	Units int `json:"units"`
	Teams int `json:"teams"`
	// Down is how long a member stays dead or disconnected.
	Down time.Duration `json:"down_ns"`
	// Detect is the time from the loss of a primary to the promotion of its standby.
	Detect time.Duration `json:"detect_ns"`
	// Rest is the time without a fault between two faults.
	Rest time.Duration `json:"rest_ns"`
	// Only selects the faults whose names contain it; empty selects all.
	Only string `json:"only,omitempty"`
	// AckWait overrides the ack_wait of the consumer; 0 leaves it as in production.
	AckWait time.Duration `json:"ack_wait_ns"`
	// Asynchronous is the negative control: commits do not wait for the standby, which is disconnected before the primary
	// dies. The trial must fail.
	Asynchronous bool `json:"asynchronous"`

	// Images are found if they are empty.
	Images Images `json:"images"`
	// Program is the path of roomsensor, for operator commands; it is built if it is empty.
	Program string `json:"-"`
	// Dir keeps the logs of the containers. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-"`
	// Progress receives a line per event.
	Progress io.Writer `json:"-"`
}

// Full returns the options of the trial that docs/operate/cluster.md describes.
func Full(seed uint64) Options {
	return Options{
		Seed: seed, Rounds: 2, Rate: 250, Units: 36, Teams: 3,
		Down: 20 * time.Second, Detect: 5 * time.Second, Rest: 10 * time.Second,
	}
}

// Short returns the options of a trial with every kind of fault once and shorter pauses.
func Short(seed uint64) Options {
	return Options{
		Seed: seed, Rounds: 1, Rate: 200, Units: 24, Teams: 2,
		Down: 8 * time.Second, Detect: time.Second, Rest: 2 * time.Second, AckWait: 5 * time.Second,
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
