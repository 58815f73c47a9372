package workload

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"roomsensor/bench/fleet"
	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
)

// Options are the sizes of the workloads.
type Options struct {
	Fleet   fleet.Fleet   `json:"fleet"`
	Rounds  int           `json:"rounds"`
	Time    time.Duration `json:"time"`    // of one side of a round, for throughput
	Layouts []string      `json:"layouts"` // see AsArrived
	Only    []string      `json:"only"`    // ids of workloads; all if empty
	Peers   bool          `json:"peers"`   // other programs beside W4 and W11, and P3, P4 and P8

	PageCount   int           `json:"pages"` // more than a plan cache has entries, few enough to check each
	ExportRows  int           `json:"export_rows"`
	UpsertRows  int           `json:"upsert_rows"`
	UploadDays  int           `json:"upload_days"`  // that every device uploads per round of W6
	BacklogDays int           `json:"backlog_days"` // that every device uploads for W7
	LoadTime    time.Duration `json:"load_time"`    // of W8, idle and under load, and of W13
	ChangeRate  int           `json:"change_rate"`  // uploads per second of P8, of one reading each
	ChangeTime  time.Duration `json:"change_time"`  // of a round of P8
	Teams       int           `json:"teams"`        // of W11 to W13
	TeamDevices int           `json:"team_devices"` // of each
	TeamPause   time.Duration `json:"team_pause"`   // between two requests for a team, longer than its snapshot lasts
	MemoryTeams int           `json:"memory_teams"` // of W15
	CPUUploads  int           `json:"cpu_uploads"`  // per round of W16
	Reduced     bool          `json:"reduced"`      // W7, W9 and W15 get no verdict

	DatabaseURL string `json:"-"` // of a server to use instead of a private one
	Results     string `json:"-"` // file for the report as JSON
}

// The physical layouts of the readings.
const (
	// AsArrived interleaves devices by time: each row of a device is on a different page.
	AsArrived = "arrived"
	// Ordered is the result of `roomsensor maintain`: chunks in primary-key order.
	Ordered = "ordered"
	// Columnstore is the result of the Community edition's policy: ended chunks in the columnstore.
	Columnstore = "columnstore"
)

// Layouts returns all layouts, in the only order in which one can be converted to the next.
func Layouts() []string { return []string{AsArrived, Ordered, Columnstore} }

// full returns the options of the whole benchmark.
func full() Options {
	return Options{
		Fleet:  fleet.Fleet{Seed: 1, Devices: 1000, Deep: 1000, Days: 90, Recent: 9, Gaps: 50},
		Rounds: 5, Time: 5 * time.Second, Layouts: []string{AsArrived, Ordered},
		PageCount: 256, ExportRows: roomsensor.MaxExportRows, UpsertRows: 200_000, UploadDays: 2, BacklogDays: 87,
		LoadTime: 15 * time.Second, ChangeRate: 1000, ChangeTime: 20 * time.Second,
		Teams: 1000, TeamDevices: 100, TeamPause: 5 * time.Second, MemoryTeams: 10_000, CPUUploads: 20_000,
		Results: "bench/results/bench.json",
	}
}

// quick returns options with the whole history of a tenth of the devices, and shorter rounds.
func quick() Options {
	o := full()
	o.Fleet.Deep, o.Fleet.Recent = 100, 4
	o.Rounds, o.Time, o.LoadTime, o.ChangeTime = 3, 2*time.Second, 3*time.Second, 10*time.Second
	o.TeamDevices, o.MemoryTeams, o.CPUUploads = 20, 1000, 5000
	o.UpsertRows, o.UploadDays, o.BacklogDays, o.Reduced = 100_000, 1, 2, true
	o.Results = "bench/results/quick.json"
	return o
}

// ParseOptions reads the arguments of the command. The first one may be "quick". It prints usage errors to log.
func ParseOptions(args []string, log io.Writer, peers bool) (Options, error) {
	o := full()
	if len(args) > 0 && args[0] == "quick" {
		o, args = quick(), args[1:]
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Uint64Var(&o.Fleet.Seed, "seed", o.Fleet.Seed, "`seed` of the readings")
	flags.IntVar(&o.Fleet.Devices, "devices", o.Fleet.Devices, "devices of the team")
	flags.IntVar(&o.Fleet.Deep, "deep", o.Fleet.Deep, "devices with the whole history")
	flags.IntVar(&o.Fleet.Days, "days", o.Fleet.Days, "days of history, with a reading every five minutes")
	flags.IntVar(&o.Fleet.Recent, "recent", o.Fleet.Recent, "days of history of the other devices; W9 starts with them")
	flags.IntVar(&o.Rounds, "rounds", o.Rounds, "rounds of each comparison")
	flags.DurationVar(&o.Time, "time", o.Time, "time of each side of a round")
	flags.DurationVar(&o.LoadTime, "load-time", o.LoadTime, "time of W8 idle, and under load, and of each part of W13")
	flags.IntVar(&o.BacklogDays, "backlog", o.BacklogDays, "days that every device uploads at once for W7")
	flags.IntVar(&o.PageCount, "pages", o.PageCount, "different pages of W2, W8 and W9")
	flags.IntVar(&o.ExportRows, "export-rows", o.ExportRows, "readings per export")
	flags.IntVar(&o.UpsertRows, "upsert-rows", o.UpsertRows, "readings of W5")
	flags.IntVar(&o.ChangeRate, "change-rate", o.ChangeRate, "uploads per second of P8")
	flags.DurationVar(&o.ChangeTime, "change-time", o.ChangeTime, "time of each round of P8")
	flags.IntVar(&o.Teams, "teams", o.Teams, "teams of W11 to W13")
	flags.IntVar(&o.TeamDevices, "team-devices", o.TeamDevices, "devices of each of these teams")
	flags.DurationVar(&o.TeamPause, "team-pause", o.TeamPause, "time between two requests for a team in W12, W13 and W17")
	flags.IntVar(&o.MemoryTeams, "memory-teams", o.MemoryTeams, "teams of W15, of 100 devices each")
	flags.IntVar(&o.CPUUploads, "cpu-uploads", o.CPUUploads, "uploads per round of W16, and a 24th of them of a day each")
	layouts := flags.String("layout", strings.Join(o.Layouts, ","), "physical layouts of readings, one after the other")
	only := flags.String("only", "", "workloads to run, such as W2,W3, or P for P3, P4 and P8 (default: all)")
	if peers {
		o.Peers, o.Results = true, "../results/peers.json" // Relative to bench/peers, the directory of its module.
	}
	flags.StringVar(&o.Results, "results", o.Results, "`file` for the report as JSON")
	flags.StringVar(&o.DatabaseURL, "database-url", "", "server to use instead of a private one")
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // It names the flag.
	}
	o.Layouts = strings.Split(*layouts, ",")
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	return o, o.validate()
}

const (
	// minDays is enough for pages of 1,000 readings.
	minDays = 4
	// minColumnstoreDays is enough for a chunk that has ended.
	minColumnstoreDays = 8
)

func (o *Options) validate() error {
	f := &o.Fleet
	if f.Deep < 1 || f.Deep > f.Devices || f.Recent < minDays || f.Recent > f.Days ||
		o.Rounds < 1 || o.PageCount < 1 {
		return fmt.Errorf("-deep must be 1 to -devices, -recent %d to -days, and -rounds and -pages at least 1", minDays)
	}
	if o.ChangeRate < 1 {
		return errors.New("-change-rate must be at least 1")
	}
	if o.Teams < 1 || o.TeamDevices < 1 || o.TeamDevices > roomsensor.MaxPage {
		return fmt.Errorf("-teams must be at least 1, and -team-devices 1 to %d", roomsensor.MaxPage)
	}
	if o.MemoryTeams < 1 || o.CPUUploads < 1 {
		return errors.New("-memory-teams and -cpu-uploads must be at least 1")
	}
	if slices.ContainsFunc(o.Only, ofPeers) && !o.Peers {
		return errors.New("-only: `go tool task bench:peers` measures P")
	}
	last := -1
	for _, layout := range o.Layouts {
		i := slices.Index(Layouts(), layout)
		if i < 0 {
			return fmt.Errorf("-layout: there is no layout %q", layout)
		}
		if i <= last {
			return fmt.Errorf("-layout: the order must be %s, because no layout can be converted back",
				strings.Join(Layouts(), ","))
		}
		last = i
	}
	if slices.Contains(o.Layouts, Columnstore) && f.Days < minColumnstoreDays {
		return fmt.Errorf("-layout: %s needs -days %d, so that a chunk has ended", Columnstore, minColumnstoreDays)
	}
	return nil
}

// ofPeers reports whether only `bench:peers` measures a workload.
func ofPeers(workload string) bool { return strings.HasPrefix(workload, "P") }

// Measures reports whether a workload is selected, such as W2. P means P3, P4 and P8.
func (o *Options) Measures(workload string) bool {
	if ofPeers(workload) && (!o.Peers || slices.Contains(o.Only, "P")) {
		return o.Peers
	}
	return len(o.Only) == 0 || slices.Contains(o.Only, workload)
}

// ofTeams are the workloads that do not need the fleet and its history.
var ofTeams = []string{"W11", "W12", "W13", "W15", "W16", "W17"}

// sharedTeams are those of them that use the same teams.
var sharedTeams = []string{"W11", "W12", "W13", "W17"}

// measuresTeams reports whether one of these is selected.
func (o *Options) measuresTeams() bool { return slices.ContainsFunc(sharedTeams, o.Measures) }

// measuresFleet reports whether another workload is selected.
func (o *Options) measuresFleet() bool {
	return len(o.Only) == 0 ||
		slices.ContainsFunc(o.Only, func(workload string) bool { return !slices.Contains(ofTeams, workload) })
}

// measuresDatabase reports whether a row that shows the time of the database is selected.
func (o *Options) measuresDatabase() bool { return o.Measures("P8") }

// measuresPeers reports whether a row that needs another program with the readings is selected.
func (o *Options) measuresPeers() bool {
	return slices.ContainsFunc([]string{"P3", "P4"}, o.Measures)
}

// checkServer returns an error if the server does not support a layout.
func (o *Options) checkServer(server postgres.Info) error {
	if slices.Contains(o.Layouts, Columnstore) && server.Edition != postgres.Community {
		return fmt.Errorf("the layout %s needs TimescaleDB's Community edition, and this server is %s: name another one "+
			"with -database-url postgres://user:password@host:5432/postgres, whose role may create databases",
			Columnstore, server)
	}
	return nil
}

var errBody = errors.New("the body is not what is stored")
