// Package cluster is a trial of the service on more than one of everything: three NATS servers with a replicated
// stream, a PostgreSQL primary with a synchronous standby, two processes of the API and two receivers behind one
// address each, and four workers. Each is a container with an address of its own, on a network that the trial makes.
//
// While uploads of a ledger are sent, members are killed and cut off, and the standby is promoted. Then the tables are
// held against the ledger, and the time without service is told for each fault.
package cluster

import (
	"errors"
	"io"
	"time"
)

// Options say what a trial does. Full and Short are the ones that are meant.
type Options struct {
	Seed   uint64 `json:"seed"`
	Rounds int    `json:"rounds"` // of all faults
	// Rate is how many readings are sent a second, about.
	Rate  int `json:"readings_per_second"`
	Units int `json:"units"`
	Teams int `json:"teams"`
	// Down is how long a member stays dead or cut off.
	Down time.Duration `json:"down_ns"`
	// Detect is how long it takes until somebody promotes the standby of a dead primary.
	Detect time.Duration `json:"detect_ns"`
	// Rest is how long the cluster works undisturbed between two faults.
	Rest time.Duration `json:"rest_ns"`
	// Only is a part of the names of the faults that happen; empty: all do.
	Only string `json:"only,omitempty"`
	// AckWait is how long the queue waits for a worker, where that is to be shorter than in production.
	AckWait time.Duration `json:"ack_wait_ns"`
	// Asynchronous is the negative control: the standby is not waited for, and cut off before the primary dies.
	Asynchronous bool `json:"asynchronous"`

	// Images are found or made where none are given.
	Images Images `json:"images"`
	// Program is the path of roomsensor, for the commands of operators; built where it is empty.
	Program string `json:"-"`
	// Dir keeps the logs of the containers; a temporary directory when empty, which goes at a clean end.
	Dir string `json:"-"`
	// Progress receives a line for everything that happens.
	Progress io.Writer `json:"-"`
}

// Full is the trial that is the proof.
func Full(seed uint64) Options {
	return Options{
		Seed: seed, Rounds: 2, Rate: 250, Units: 36, Teams: 3,
		Down: 20 * time.Second, Detect: 5 * time.Second, Rest: 10 * time.Second,
	}
}

// Short has every kind of fault once, with shorter pauses.
func Short(seed uint64) Options {
	return Options{
		Seed: seed, Rounds: 1, Rate: 200, Units: 24, Teams: 2,
		Down: 8 * time.Second, Detect: time.Second, Rest: 2 * time.Second, AckWait: 5 * time.Second,
	}
}

var errOptions = errors.New("a trial needs a fault, a round, readings, 2 teams and a unit in each of them")

// Validate tells whether a trial can prove something.
func (o *Options) Validate() error {
	if len(o.kinds()) == 0 || o.Rounds <= 0 || o.Rate <= 0 || o.Teams < 2 || o.Units < o.Teams {
		return errOptions
	}
	return nil
}
