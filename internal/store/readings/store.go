// Package readings reads the readings of the devices of teams: pages, exports, aggregates, coverage and nights.
package readings

import (
	"time"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

// Store reads readings. It is safe for concurrent use.
type Store struct {
	*pg.DB
	Limits Limits // Tests set other ones, so that they need less data or wait for a slow machine.

	fleet       *fleet.Store
	teamExports *fairshare.Limiter // exports that are being read
}

// Limits bound what statements, pages and exports read.
type Limits struct {
	// SliceRows is the target number of rows of a slice. An export is read in slices of its window, which are sorted here:
	// the database would sort all rows on disk before it sends the first, which takes a third of the time of an export.
	// Each slice costs a plan and a descent of the index per device.
	SliceRows int
	// ExportTime bounds the time in which all rows of an export are read.
	ExportTime time.Duration

	// A page of coverage has CoveragePage buckets, and its first statement reads CoverageStatement of them, unless those
	// of one device are more. After CoverageTime no further statement begins: a slow database makes pages shorter.
	CoverageStatement, CoveragePage int
	CoverageTime                    time.Duration
	// A page of gaps reads GapPage readings, and a statement GapStatement of them.
	GapStatement, GapPage int

	// AggregateTime is the time after which no further statement of a page of aggregates begins.
	AggregateTime time.Duration
	// AggregateCells is how many buckets of devices an export of aggregates computes at once. A cell with readings takes
	// 350 bytes meanwhile.
	AggregateCells int
	// StatementReadings is how many readings take as long as a statement does.
	StatementReadings int
}

// defaultLimits let a page of coverage have 1,000 devices in a day, or 11 in 90 days. Its first statement reads a
// fifth, and the second one the rest: large statements read each page of the disk once for many devices, but from a
// cold disk a single one might take longer than its timeout. They let a page of gaps read the readings of a year.
var defaultLimits = Limits{
	SliceRows: 50_000, ExportTime: 30 * time.Second,
	CoverageStatement: 60_000, CoveragePage: 300_000, CoverageTime: time.Second,
	GapStatement: 4_000, GapPage: 100_000,
	AggregateTime: 2 * time.Second, AggregateCells: 10_000, StatementReadings: 2_000,
}

// New returns a store with the pools of a role.
func New(d *pg.DB, f *fleet.Store) *Store {
	return &Store{DB: d, Limits: defaultLimits, fleet: f, teamExports: fairshare.New(fairshare.Config{
		Name: "export_reads", Team: fairshare.Limit{
			Most: maxTeamExports(), RetryAfter: pg.RetryAfter, Message: roomsensor.CodeOverloaded.New().Message,
		},
	})}
}
