package processes

import (
	"errors"
	"time"

	"roomsensor/internal/queue"
	"roomsensor/test/harness"
)

// Options describe a trial. Use Full or Short and change single fields. The tags are the flags of the command line.
type Options struct {
	harness.Options

	Readings int           `json:"readings" help:"Minimum of distinct readings to send." placeholder:"N"`
	Burst    time.Duration `json:"burst_ns" help:"Period over which readings are sent and faults happen." placeholder:"DURATION"`
	Workers  int           `json:"workers" help:"Number of workers." placeholder:"N"`
	Faults   Counts        `json:"faults" kong:"-"`
	// Halt is the time for which a worker is suspended. It is longer than AckWait.
	Halt time.Duration `json:"halt_ns" kong:"-"`
	// MaxToxic is the longest time for which a toxic is active.
	MaxToxic time.Duration `json:"max_toxic_ns" kong:"-"`
	// Volatile turns fsync off, to save time. A killed PostgreSQL process loses nothing by that.
	Volatile bool `json:"volatile" kong:"-"`
	// PrintPlan is a flag of the command line only.
	PrintPlan bool `json:"-" name:"plan" help:"Print the plan of faults and exit."`
}

// Counts is the number of faults of each kind.
type Counts map[Kind]int

// Full returns the options of the trial that docs/operate/reliability.md describes.
func Full(seed uint64) Options {
	return Options{
		Options:  harness.Options{Seed: seed, Units: 30, Teams: 3},
		Readings: 210_000, Burst: 8 * time.Minute, Workers: 3,
		Faults: Counts{
			KillWorker: 50, KillReceiver: 10, KillAPI: 10, KillQueue: 20, KillDatabase: 10, KillPostmaster: 10,
			KillBackend: 10, HaltWorker: 3, AddToxic: 32,
		},
		Halt: queue.AckWait + 15*time.Second, MaxToxic: 20 * time.Second,
	}
}

// Short returns the options of the trial in the tests: every kind of fault in less than a minute.
func Short(seed uint64) Options {
	return Options{
		Options:  harness.Options{Seed: seed, Units: 6, Teams: 2, AckWait: 3 * time.Second},
		Readings: 5_000, Burst: 16 * time.Second, Workers: 2,
		Faults: Counts{
			KillWorker: 6, KillReceiver: 1, KillAPI: 2, KillQueue: 2, KillDatabase: 1, KillPostmaster: 1,
			KillBackend: 1, HaltWorker: 1, AddToxic: 8,
		},
		Halt: 4 * time.Second, MaxToxic: 2 * time.Second, Volatile: true,
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
