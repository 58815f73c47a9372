package fleet

import (
	"errors"
	"io"
	"time"

	"roomsensor/internal/roomsensor"
)

// Options are the sizes of a trial. Use Full or Short and change single fields. The tags are the flags of the command
// line.
type Options struct {
	Devices  int           `json:"devices" help:"Devices, each of which uploads every 5 minutes." placeholder:"N"`
	Duration time.Duration `json:"duration_ns" help:"Time for which they upload." placeholder:"DURATION"`
	Teams    int           `json:"teams" help:"Teams, which share the devices evenly." placeholder:"N"`
	// Outage is the length of an outage of a device. One device in a hundred is offline at any time.
	Outage time.Duration `json:"outage_ns" help:"Time for which a device stays offline, in multiples of 5 minutes." placeholder:"DURATION"`
	// Late devices were offline for LateFor and come back at once after some seconds.
	Late    int           `json:"late" help:"Devices that send nothing before they all come back at once." placeholder:"N"`
	LateFor time.Duration `json:"late_for_ns" help:"Time for which these devices were offline, in multiples of 5 minutes." placeholder:"DURATION"`
	// LateAfter is long enough for samples of the time before.
	LateAfter time.Duration `json:"late_after_ns" help:"Time after which they come back." placeholder:"DURATION"`
	// History is as if the workers had stored it: the snapshots and the hours of /devices/current need all of it.
	History time.Duration `json:"history_ns" help:"Time for which each device has readings before the trial, in whole hours." placeholder:"DURATION"`
	// Restart shows what a rolling deployment costs: the new process serves before the old one stops.
	Restart  time.Duration     `json:"restart_ns" help:"Time after which the API process is replaced by a new one (default: never)." placeholder:"DURATION"`
	Polls    float64           `json:"polls_per_minute" help:"Requests of each team for /devices/current, per minute." placeholder:"N"`
	Exports  float64           `json:"exports_per_second" help:"CSV exports per second, of all teams together." placeholder:"N"`
	Probes   float64           `json:"probes_per_second" help:"Uploads per second whose time to visibility is measured." placeholder:"N"`
	Senders  int               `json:"senders" help:"Connections of the devices." placeholder:"N"`
	Workers  int               `json:"workers" help:"Workers." placeholder:"N"`
	Every    time.Duration     `json:"every_ns" help:"Time between two lines of the report." placeholder:"DURATION"`
	Seed     uint64            `json:"seed" help:"Seed of the values and ids (default: random)." placeholder:"N"`
	Settings map[string]string `json:"database_settings" help:"Settings of the private database server, beside the trial's own." placeholder:"NAME=VALUE"`
	// DatabaseURL is for tests: processes of such a server are not measured.
	DatabaseURL string `json:"-" kong:"-"`
	// Dir keeps programs, logs and streams. If it is empty, a temporary directory is used, and removed after a success.
	Dir string `json:"-" help:"Directory for programs, logs and streams (default: a temporary one)." placeholder:"DIR"`
	// Progress receives a line per event. It may be nil.
	Progress io.Writer `json:"-" kong:"-"`
}

// Full returns the options of a million devices for an hour.
func Full(seed uint64) Options {
	return Options{
		Devices: 1_000_000, Duration: time.Hour, Teams: 1000, Outage: time.Hour, Polls: 1, Exports: 1, Probes: 1,
		Senders: 256, Workers: 2, Every: time.Minute, LateAfter: 15 * time.Second, Seed: seed,
	}
}

// Short returns the options of 20,000 devices for a minute.
func Short(seed uint64) Options {
	o := Full(seed)
	o.Devices, o.Duration, o.Outage, o.Every = 20_000, time.Minute, 10*time.Minute, 15*time.Second
	return o
}

// Burst returns the options of 1,000 devices that come back at once after 3 days, beside 6,000 others that send 20
// uploads a second.
func Burst(seed uint64) Options {
	o := Full(seed)
	o.Devices, o.Duration, o.Teams, o.Late, o.LateFor = 7000, time.Minute, 100, 1000, 72*time.Hour
	o.Outage, o.Probes, o.Senders, o.Every = 10*time.Minute, 4, 64, 5*time.Second
	return o
}

// ShortBurst returns the options of 100 such devices beside 2,000 others, for 30 seconds.
func ShortBurst(seed uint64) Options {
	o := Burst(seed)
	o.Devices, o.Duration, o.Teams, o.Late, o.LateAfter = 2100, 30*time.Second, 30, 100, 5*time.Second
	return o
}

// Validate returns an error for sizes with which nothing can be measured.
func (o *Options) Validate() error {
	switch {
	case o.Devices < 1 || o.Duration <= 0 || o.Teams < 1 || o.Senders < 1 || o.Workers < 1 || o.Every <= 0:
		return errors.New("all sizes must be greater than 0")
	case o.Teams > o.Devices:
		return errors.New("there must be a device for each team")
	case o.Outage <= 0 || o.Outage%roomsensor.BucketLength != 0:
		return errors.New("the time offline must be a multiple of 5 minutes")
	case o.Late < 0 || o.Late > o.Devices || o.LateFor < 0 || o.LateFor%roomsensor.BucketLength != 0 || o.LateAfter < 0:
		return errors.New("late devices are a part of the devices, and offline for a multiple of 5 minutes")
	case o.History < 0 || o.History%time.Hour != 0:
		return errors.New("the history must be whole hours")
	case o.Restart < 0:
		return errors.New("the time of the restart must not be negative")
	case o.Polls < 0 || o.Exports < 0 || o.Probes < 0:
		return errors.New("rates must not be negative")
	}
	return nil
}
