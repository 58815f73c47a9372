package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateSizing = flag.Bool("update-sizing", false, "rewrite the table of three fleets in docs/operate/sizing.md")

// figures are what the page measured, each with the words in which the page states it.
var figures = []struct {
	value float64
	words string
}{
	rows:     {147, "D × 147 +"},
	columns:  {20, "C × 20) +"},
	hourly:   {6000, "(D + C) × 6,000) bytes"},
	log:      {1050, "N × R × 1,050 bytes a day"},
	stream:   {434, "| stream, per copy (`STREAM_REPLICAS`) | 434 |"},
	index:    {69, "N × R × 69 bytes × its days"},
	idle:     {0.04, "all processes together keep 0.04 cores busy"},
	cores:    {0.0016, "× 0.0016 below 300 per second"},
	polled:   {0.001055, "| all | 1,635 | 1,055 |"},
	current:  {164, "with gzip | 164 of a device |"},
	exported: {19, "with gzip | 19 of a reading |"},
	receipt:  {365, "the answer to an upload | 365 |"},
}

// The indexes of figures.
const (
	rows     = iota // bytes of a reading as a row
	columns         // bytes of a reading in the columnstore
	hourly          // bytes of readings_hourly of a device and day
	log             // bytes of write-ahead log of a reading
	stream          // bytes of an upload in the stream
	index           // bytes of a reading in the index of its chunk
	idle            // cores of all processes with little traffic
	cores           // seconds of a core for an upload
	polled          // the same with polls and exports, from 300 uploads per second on
	current         // bytes of a device in GET /devices/current, with gzip
	exported        // bytes of a reading in a CSV, with gzip
	receipt         // bytes of the answer to an upload
)

// fleet is a column of the table. Machines and what they have are chosen.
type fleet struct {
	name                   string
	devices, teams         float64
	machines               string
	vCPU, memory           float64
	databases, natsServers float64
	chunkDays              float64
}

var fleets = []fleet{
	{"a school", 30, 1, "one, for everything", 2, 4, 1, 1, 7},
	{"a chain", 2_000, 20, "three of 2 vCPU and 8 GiB: NATS on each; primary; standby; two of each process", 6, 24, 2, 3, 7},
	{"a platform", 200_000, 2_000, "primary and standby of 4 vCPU and 64 GiB; two of 2 vCPU and 8 GiB for two of each process; three of 2 vCPU and 4 GiB for NATS", 18, 156, 2, 3, 3},
}

const (
	readingsADay = 288
	year         = 365.0
	month        = 30.0
	rowDays      = 30.0 // the default of COLUMNSTORE_AFTER
	backupDays   = 14.0 // of the log, with two full backups a week apart
	spare        = 1.2  // of each disk
	pollsADay    = 1440
	hoursAMonth  = 730
)

// prices are a month's prices in dollars.
var prices = struct{ vCPU, memory, ssd, object, egress float64 }{hoursAMonth * 0.04048, hoursAMonth * 0.004445, 0.08, 0.023, 0.09}

func figure(i int) float64 { return figures[i].value }

// plan is what a fleet takes: cores, and bytes.
type plan struct{ rate, cores, database, later, chunk, stream, log, index, ssd, backup, egress float64 }

func (f *fleet) plan() (p plan) {
	n, readings := f.devices, f.devices*readingsADay
	p.rate = readings / 86400
	p.cores = figure(idle) + p.rate*figure(cores)
	if p.rate > 300 {
		p.cores = p.rate * figure(polled)
	}
	p.database = readings*(rowDays*figure(rows)+(year-rowDays)*figure(columns)) + n*year*figure(hourly)
	p.later = readings*year*figure(columns) + n*year*figure(hourly)
	p.chunk = readings * figure(rows) * f.chunkDays
	p.index = readings * figure(index) * f.chunkDays
	p.stream = readings * figure(stream) * 7
	p.log = readings * figure(log)
	p.ssd = spare * (f.databases*(p.database+2*p.chunk) + f.natsServers*p.stream)
	p.backup = 2*p.database + backupDays*p.log
	p.egress = month * n * (pollsADay*figure(current) + readingsADay*(figure(exported)+figure(receipt)))
	return p
}

// rows of the table, by what they show.
func fleetTable() string {
	type row struct {
		title string
		cell  func(f *fleet, p *plan) string
	}
	cost := func(of func(f *fleet, p *plan) float64) func(*fleet, *plan) string {
		return func(f *fleet, p *plan) string { return dollars(of(f, p)) }
	}
	costs := []func(f *fleet, p *plan) float64{
		func(f *fleet, _ *plan) float64 { return f.vCPU*prices.vCPU + f.memory*prices.memory },
		func(_ *fleet, p *plan) float64 { return p.ssd / 1e9 * prices.ssd },
		func(_ *fleet, p *plan) float64 { return p.backup / 1e9 * prices.object },
		func(_ *fleet, p *plan) float64 { return p.egress / 1e9 * prices.egress },
	}
	sum := func(f *fleet, p *plan) (all float64) {
		for _, c := range costs {
			all += c(f, p)
		}
		return all
	}
	lines := []row{
		{"devices, teams", func(f *fleet, _ *plan) string { return count(f.devices) + ", " + count(f.teams) }},
		{"uploads per second", func(_ *fleet, p *plan) string { return digits(p.rate) }},
		{"busy cores, polls and exports included", func(_ *fleet, p *plan) string { return digits(p.cores) }},
		{"machines (chosen)", func(f *fleet, _ *plan) string { return f.machines }},
		{"vCPU, memory", func(f *fleet, _ *plan) string { return fmt.Sprintf("%.0f, %.0f GiB", f.vCPU, f.memory) }},
		{"length of chunks, index of one", func(f *fleet, p *plan) string { return fmt.Sprintf("%.0f days, %s", f.chunkDays, bytes(p.index)) }},
		{"database after a year", func(_ *fleet, p *plan) string { return bytes(p.database) }},
		{"and each year after that", func(_ *fleet, p *plan) string { return bytes(p.later) }},
		{"stream, 7 days, each copy", func(_ *fleet, p *plan) string { return bytes(p.stream) }},
		{"write-ahead log, a day", func(_ *fleet, p *plan) string { return bytes(p.log) }},
		{"SSD of all machines for the first year", func(_ *fleet, p *plan) string { return bytes(p.ssd) }},
		{"backups", func(_ *fleet, p *plan) string { return bytes(p.backup) }},
		{"to clients and devices, a month", func(_ *fleet, p *plan) string { return bytes(p.egress) }},
		{"machines, a month", cost(costs[0])},
		{"SSD", cost(costs[1])},
		{"backups", cost(costs[2])},
		{"to clients and devices", cost(costs[3])},
		{"**all, a month**", func(f *fleet, p *plan) string { return "**" + dollars(sum(f, p)) + "**" }},
		{"a device and month", func(f *fleet, p *plan) string { return fmt.Sprintf("$%.2g", sum(f, p)/f.devices) }},
	}
	var table strings.Builder
	table.WriteString("|")
	for i := range fleets {
		table.WriteString(" | " + fleets[i].name)
	}
	table.WriteString(" |\n|" + strings.Repeat("---|", len(fleets)+1) + "\n")
	for _, l := range lines {
		table.WriteString("| " + l.title)
		for i := range fleets {
			p := fleets[i].plan()
			table.WriteString(" | " + l.cell(&fleets[i], &p))
		}
		table.WriteString(" |\n")
	}
	return table.String()
}

// The table of three fleets follows from the figures of its page, which has each of them in its words.
func TestSizingFleets(t *testing.T) {
	t.Parallel()
	const name, start, end = "operate/sizing.md", "\n## Three fleets\n", "\n### What was chosen\n"
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	page := string(text)
	for _, f := range figures {
		require.Contains(t, page, f.words)
	}
	before, section, found := strings.Cut(page, start)
	require.True(t, found)
	section, after, found := strings.Cut(section, end)
	require.True(t, found)
	intro, table, found := strings.Cut(section, "\n| |")
	require.True(t, found)
	want := "\n" + fleetTable()
	if *updateSizing {
		//nolint:gosec // The name is constant.
		require.NoError(t, os.WriteFile(name, []byte(before+start+intro+want+end+after), 0o644))
	}
	require.Equal(t, want, "\n| |"+table, "run go test ./docs -run TestSizingFleets -update-sizing")
}

// digits prints a number with two digits, or all before the point.
func digits(x float64) string {
	if x >= 100 {
		return count(x)
	}
	return fmt.Sprintf("%.2g", x)
}

// count prints a whole number with commas.
func count(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func bytes(x float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if x >= unit.size {
			return digits(x/unit.size) + " " + unit.name
		}
	}
	return digits(x/1e3) + " kB"
}

// dollars prints an amount in whole dollars, or with cents below 10.
func dollars(x float64) string {
	if x < 10 {
		return fmt.Sprintf("$%.2f", x)
	}
	return "$" + count(x)
}
