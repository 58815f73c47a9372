// Package chaos is a trial by fire of the ingest side: real processes, real faults, and a ledger of what was sent,
// which is held against the tables in the end.
//
// A trial sends uploads through the receiver and straight into the stream while it kills workers, the receiver, NATS
// and PostgreSQL, halts workers for longer than the queue waits for them, and spoils the lines between workers, queue
// and database. Then it waits until everything is settled, compares, gives the whole stream to the workers again, and
// compares once more.
package chaos

import (
	"errors"
	"io"
	"time"

	"roomsensor/internal/queue"
)

// Options say what a trial does. Full and Short are the ones that are meant.
type Options struct {
	Seed     uint64        `json:"seed"`
	Readings int           `json:"readings"` // to be sent and stored
	Burst    time.Duration `json:"burst_ns"` // over which they are sent and the faults happen
	Workers  int           `json:"workers"`
	Units    int           `json:"units"`
	Teams    int           `json:"teams"`
	Faults   Counts        `json:"faults"`
	// Plan is carried out in the place of one that is drawn with Faults, when it is set.
	Plan Plan `json:"-"`
	// Halt is how long a worker is halted; longer than AckWait.
	Halt time.Duration `json:"halt_ns"`
	// AckWait is how long the queue waits for a worker, where that is to be shorter than in production.
	AckWait time.Duration `json:"ack_wait_ns"`
	// Poison is how long a line is spoilt, at most.
	Poison time.Duration `json:"poison_ns"`
	// Volatile lets PostgreSQL skip fsync, which a kill cannot tell, to save time.
	Volatile bool `json:"volatile"`
	// AckEarly makes the workers acknowledge before they commit, which a trial must notice.
	AckEarly bool `json:"ack_early"`

	// Programs are built for the trial where none are given.
	Programs Programs `json:"-"`
	// Dir keeps programs, logs and streams; a temporary directory when empty, which goes at a clean end.
	Dir string `json:"-"`
	// Progress receives a line for everything that happens.
	Progress io.Writer `json:"-"`
}

// Counts say how often each fault happens.
type Counts struct {
	WorkerKills   int `json:"worker_kills"`
	ReceiverKills int `json:"receiver_kills"`
	QueueKills    int `json:"queue_kills"`
	DatabaseKills int `json:"database_kills"` // of the postmaster, with its children or without
	BackendKills  int `json:"backend_kills"`  // of one child alone
	Halts         int `json:"halts"`
	Poisons       int `json:"poisons"` // of the lines, kinds and directions in turn
}

func (c *Counts) add(kind Kind) {
	switch kind {
	case KillWorker:
		c.WorkerKills++
	case KillReceiver:
		c.ReceiverKills++
	case KillQueue:
		c.QueueKills++
	case KillDatabase, KillMaster:
		c.DatabaseKills++
	case KillBackend:
		c.BackendKills++
	case HaltWorker:
		c.Halts++
	case Poison:
		c.Poisons++
	}
}

// Full is the trial that is the proof.
func Full(seed uint64) Options {
	return Options{
		Seed: seed, Readings: 210_000, Burst: 8 * time.Minute, Workers: 3, Units: 30, Teams: 3,
		Faults: Counts{
			WorkerKills: 50, ReceiverKills: 10, QueueKills: 20, DatabaseKills: 20, BackendKills: 10, Halts: 3, Poisons: 32,
		},
		Halt: queue.AckWait + 15*time.Second, Poison: 20 * time.Second,
	}
}

// Short is for every run of the tests: each kind of fault, in less than a minute.
func Short(seed uint64) Options {
	return Options{
		Seed: seed, Readings: 5_000, Burst: 16 * time.Second, Workers: 2, Units: 6, Teams: 2,
		Faults: Counts{
			WorkerKills: 6, ReceiverKills: 1, QueueKills: 2, DatabaseKills: 2, BackendKills: 1, Halts: 1, Poisons: 8,
		},
		Halt: 4 * time.Second, AckWait: 3 * time.Second, Poison: 2 * time.Second, Volatile: true,
	}
}

var errOptions = errors.New("a trial needs readings, a burst, 2 workers, 2 teams and a unit in each of them")

// Validate tells whether a plan can be drawn and a trial can prove something.
func (o *Options) Validate() error {
	if o.Readings <= 0 || o.Burst <= 0 || o.Workers < 2 || o.Teams < 2 || o.Units < o.Teams {
		return errOptions
	}
	return nil
}
