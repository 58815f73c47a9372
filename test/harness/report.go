package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"roomsensor/test/ledger"
)

// Report is the part of a report that all trials share.
type Report struct {
	Verdict ledger.Verdict `json:"verdict"`
	// Findings are unexpected events.
	Findings []string `json:"findings"`

	Started  time.Time    `json:"started"`
	Hardware Hardware     `json:"hardware"`
	Uploads  ledger.Tally `json:"uploads"`
	Rows     int          `json:"rows"`
	Rejects  int          `json:"rejects"`
	Followed int          `json:"followed"` // items of the change feed
	Visible  Visible      `json:"time_to_visible"`
	// Redeliveries counts deliveries beyond the first of each message, as far as the queue reports them.
	Redeliveries int64         `json:"redeliveries"`
	Sent         time.Duration `json:"sent_ns"`     // until the last upload had its final outcome
	Settled      time.Duration `json:"settled_ns"`  // from then until the workers were done
	Replayed     time.Duration `json:"replayed_ns"` // to process the whole stream again
}

// ErrFailed is returned for a trial that ran to its end and failed.
var ErrFailed = errors.New("the trial failed")

// Failure returns nil if the ledger matches what is stored and there are no findings.
func (r *Report) Failure() error {
	if r.Verdict.Clean() && len(r.Findings) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrFailed, strings.Join(append(r.Verdict.Examples, r.Findings...), "\n"))
}

// Line is a line of a printed report.
type Line struct{ Name, Text string }

// Linef formats a Line.
func Linef(name, format string, args ...any) Line { return Line{name, fmt.Sprintf(format, args...)} }

// Print writes the report: the lines of the trial, those that all trials share, and the verdict in the last line.
func (r *Report) Print(out io.Writer, trial []Line, extra string) error {
	u, v := &r.Uploads, &r.Visible
	lines := append([]Line{
		Linef("machine", "%d × %s, %s, %s", r.Hardware.CPUs, r.Hardware.CPU, r.Hardware.System, r.Hardware.Go),
	}, trial...)
	lines = append(lines,
		Linef("uploads", "%d ok (%d to sources), %d failed, %d unknown (%d of them stored), in %d attempts; %d not sent",
			u.OK, u.Sourced, u.Failed, u.Unknown, u.UnknownStored, u.Attempts, u.Unsent),
		Linef("stream messages", "%d, %d of them repeat an upload, %d beyond the attempts", u.Messages, u.Repeated, u.Excess),
		Linef("redeliveries to workers", "%d", r.Redeliveries),
		Linef("rows", "%d readings, %d rejects", r.Rows, r.Rejects),
		Linef("change feed", "%d items, each new or changed", r.Followed),
		Linef("time to visible", "p50 %s, p99 %s, max %s, of %d uploads",
			Seconds(v.P50), Seconds(v.P99), Seconds(v.Max), v.Uploads),
		Linef("duration", "%s to send, %s to settle, %s to replay the stream",
			Seconds(r.Sent), Seconds(r.Settled), Seconds(r.Replayed)))
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", line.Name, line.Text) // Writing to a buffer cannot fail.
	}
	_ = table.Flush()
	text.WriteString(extra + r.Verdict.String() + "\n")
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// Seconds formats a duration with one decimal.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Save writes a report as JSON.
func Save(path string, report any) error {
	encoded, err := json.MarshalIndent(report, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(encoded, '\n'), 0o644) //nolint:gosec // Everybody may read it.
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Conditions are the time and the machine of a trial.
type Conditions struct {
	Started  time.Time `json:"started"`
	Hardware Hardware  `json:"hardware"`
	LoadAvg  string    `json:"load_average_at_start"`
}

// Now returns the present conditions, with the database as it describes itself.
func Now(database string) Conditions {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	return Conditions{time.Now().UTC().Truncate(time.Second), ThisMachine(database), strings.TrimSpace(string(load))}
}

// String is the first line of a printed report.
func (c *Conditions) String() string {
	h := &c.Hardware
	return fmt.Sprintf("%s, %d cores, load average %s, %s", h.CPU, h.CPUs, c.LoadAvg, h.Database)
}

// Hardware describes the machine and servers of a trial.
type Hardware struct {
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
	System   string `json:"system"`
	Go       string `json:"go"`
	Database string `json:"database"`
	NATS     string `json:"nats"`
}

// ThisMachine describes this machine, and the database as it describes itself.
func ThisMachine(database string) Hardware {
	return Hardware{
		CPU: SystemField("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Database: database, NATS: server.VERSION,
	}
}

// SystemField returns a value of a file in /proc, or "unknown" if the system does not report it.
func SystemField(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // Callers pass constants.
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
