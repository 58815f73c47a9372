package processes

import (
	"errors"
	"io"
	"time"

	"roomsensor/internal/queue"
)

// Options describe a trial. Use Full or Short and change single fields.
type Options struct {
	Seed     uint64        `json:"seed"`
	Readings int           `json:"readings"` // minimum of distinct readings to send and store
	Burst    time.Duration `json:"burst_ns"` // period over which uploads are sent and faults happen
	Workers  int           `json:"workers"`
	Units    int           `json:"units"`
	Teams    int           `json:"teams"`
	Faults   Counts        `json:"faults"`
	// Plan replaces the plan that is drawn from Faults, if it is set.
	Plan Plan `json:"-"`
	// Halt is how long a worker is suspended. It is longer than AckWait.
	Halt time.Duration `json:"halt_ns"`
	// AckWait overrides the ack_wait of the consumer; 0 leaves it as in production.
	AckWait time.Duration `json:"ack_wait_ns"`
	// MaxToxic is the longest time for which a toxic is active.
	MaxToxic time.Duration `json:"max_toxic_ns"`
	// Volatile turns fsync off, to save time. A killed PostgreSQL process loses nothing by that.
	Volatile bool `json:"volatile"`
	// AckEarly is the negative control: workers acknowledge before they commit, and the trial must fail.
	AckEarly bool `json:"ack_early"`

	// Programs are built if they are empty.
	Programs Programs `json:"-"`
	// Dir keeps programs, logs and streams. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-"`
	// Progress receives a line per event.
	Progress io.Writer `json:"-"`
}

// Counts is the number of faults of each kind.
type Counts struct {
	WorkerKills   int `json:"worker_kills"`
	ReceiverKills int `json:"receiver_kills"`
	QueueKills    int `json:"queue_kills"`
	DatabaseKills int `json:"database_kills"` // of the postmaster, alternately with and without its children
	BackendKills  int `json:"backend_kills"`  // of one child of the postmaster
	Halts         int `json:"halts"`
	Toxics        int `json:"toxics"` // types and directions in turn
}

func (c *Counts) add(kind Kind) {
	switch kind {
	case KillWorker:
		c.WorkerKills++
	case KillReceiver:
		c.ReceiverKills++
	case KillQueue:
		c.QueueKills++
	case KillDatabase, KillPostmaster:
		c.DatabaseKills++
	case KillBackend:
		c.BackendKills++
	case HaltWorker:
		c.Halts++
	case AddToxic:
		c.Toxics++
	}
}

// Full returns the options of the trial that docs/operate/reliability.md describes.
func Full(seed uint64) Options {
	return Options{
		Seed: seed, Readings: 210_000, Burst: 8 * time.Minute, Workers: 3, Units: 30, Teams: 3,
		Faults: Counts{
			WorkerKills: 50, ReceiverKills: 10, QueueKills: 20, DatabaseKills: 20, BackendKills: 10, Halts: 3, Toxics: 32,
		},
		Halt: queue.AckWait + 15*time.Second, MaxToxic: 20 * time.Second,
	}
}

// Short returns the options of the trial in the tests: every kind of fault in less than a minute.
func Short(seed uint64) Options {
	return Options{
		Seed: seed, Readings: 5_000, Burst: 16 * time.Second, Workers: 2, Units: 6, Teams: 2,
		Faults: Counts{
			WorkerKills: 6, ReceiverKills: 1, QueueKills: 2, DatabaseKills: 2, BackendKills: 1, Halts: 1, Toxics: 8,
		},
		Halt: 4 * time.Second, AckWait: 3 * time.Second, MaxToxic: 2 * time.Second, Volatile: true,
	}
}

var errOptions = errors.New("a trial needs readings, a burst, 2 workers, 2 teams and a unit per team")

// Validate returns an error for options with which no plan can be drawn or nothing can be proven.
func (o *Options) Validate() error {
	if o.Readings <= 0 || o.Burst <= 0 || o.Workers < 2 || o.Teams < 2 || o.Units < o.Teams {
		return errOptions
	}
	return nil
}
