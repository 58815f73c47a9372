package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"roomsensor/bench/fleet"
	"roomsensor/bench/workload"
	"roomsensor/internal/localdb"
	"roomsensor/internal/roomsensor"
)

type options struct {
	workload.Options
	database string
	results  string
}

// full is the benchmark of a fleet's whole history.
func full() options {
	return options{
		Options: workload.Options{
			Fleet:  fleet.Fleet{Seed: 1, Devices: 1000, Deep: 1000, Days: 90, Recent: 9, Gaps: 50},
			Rounds: 5, Time: 5 * time.Second, Layouts: []string{workload.AsArrived, workload.Ordered},
			ExportRows: roomsensor.MaxExportRows, UpsertRows: 200_000, UploadDays: 2, BacklogDays: 87,
			Peers: true, LoadTime: 15 * time.Second,
		},
		results: "bench/results/bench.json",
	}
}

// quick has the whole history of a tenth of the devices, and shorter rounds.
func quick() options {
	o := full()
	o.Fleet.Deep, o.Fleet.Recent = 100, 4
	o.Rounds, o.Time, o.LoadTime = 3, 2*time.Second, 3*time.Second
	o.UpsertRows, o.UploadDays, o.BacklogDays, o.Reduced, o.Peers = 100_000, 1, 2, true, false
	o.results = "bench/results/quick.json"
	return o
}

func parse(args []string, log io.Writer) (options, error) {
	o := full()
	if len(args) > 0 && args[0] == "quick" {
		o, args = quick(), args[1:]
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Uint64Var(&o.Fleet.Seed, "seed", o.Fleet.Seed, "what all readings come from")
	flags.IntVar(&o.Fleet.Devices, "devices", o.Fleet.Devices, "devices of the team")
	flags.IntVar(&o.Fleet.Deep, "deep", o.Fleet.Deep, "devices that have the whole history")
	flags.IntVar(&o.Fleet.Days, "days", o.Fleet.Days, "days of history, a reading every five minutes")
	flags.IntVar(&o.Fleet.Recent, "recent", o.Fleet.Recent, "days that every device has; with them W9 begins")
	flags.IntVar(&o.Rounds, "rounds", o.Rounds, "rounds of each comparison")
	flags.DurationVar(&o.Time, "time", o.Time, "time of each side of a round")
	flags.DurationVar(&o.LoadTime, "load-time", o.LoadTime, "time of W8 idle, and again under load")
	flags.IntVar(&o.BacklogDays, "backlog", o.BacklogDays, "days that every device sends at once for W7")
	flags.IntVar(&o.ExportRows, "export-rows", o.ExportRows, "readings of an export")
	flags.IntVar(&o.UpsertRows, "upsert-rows", o.UpsertRows, "readings of W5")
	layouts := flags.String("layout", strings.Join(o.Layouts, ","), "physical orders of the readings, one after the other")
	flags.BoolVar(&o.Peers, "peers", o.Peers, "build other programs: run W6 against Telegraf, and P1 to P4")
	flags.StringVar(&o.Profile, "profile", "", "directory for profiles and plans of W1 to W6, made apart from the rounds")
	only := flags.String("only", "", "workloads to run, such as W2,W3, or P for P1 to P4; all when empty")
	flags.StringVar(&o.results, "results", o.results, "file for the figures")
	flags.StringVar(&o.database, "database-url", "", "server to use instead of one that is started")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // It is a sentence.
	}
	o.Layouts = strings.Split(*layouts, ",")
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	return o, o.validate()
}

const (
	// leastDays have a page of 1,000 readings.
	leastDays = 4
	// leastColumns are days of which some lie in a chunk that has ended.
	leastColumns = 8
)

func (o *options) validate() error {
	f := &o.Fleet
	if f.Deep < 1 || f.Deep > f.Devices || f.Recent < leastDays || f.Recent > f.Days || o.Rounds < 1 {
		return errors.New("there must be a deep device and at most all of them, 4 recent days and at most all, and a round")
	}
	return o.validateLayouts()
}

func (o *options) validateLayouts() error {
	last := -1
	for _, layout := range o.Layouts {
		i := slices.Index(workload.Layouts(), layout)
		if i < 0 {
			return fmt.Errorf("there is no layout %q", layout)
		}
		if i <= last {
			return fmt.Errorf("there is no way back to the layout %s: the order is %s", layout,
				strings.Join(workload.Layouts(), ","))
		}
		last = i
	}
	if slices.Contains(o.Layouts, workload.Columnstore) && o.Fleet.Days < leastColumns {
		return fmt.Errorf("the layout %s needs %d days, so that a chunk has ended", workload.Columnstore, leastColumns)
	}
	return nil
}

// suits says what a server lacks for what is to be measured.
func (o *options) suits(server localdb.Info) error {
	if slices.Contains(o.Layouts, workload.Columnstore) && server.Edition != localdb.Community {
		return fmt.Errorf("the layout %s needs TimescaleDB's Community edition, and this server is %s: name another one "+
			"with -database-url postgres://user:password@host:5432/postgres, whose role may create databases",
			workload.Columnstore, server)
	}
	return nil
}
