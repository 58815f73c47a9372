package report

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/test/harness"
)

// Report is the result of a run, with the machine and settings.
type Report struct {
	At       time.Time         `json:"at"`
	Commit   string            `json:"commit"`
	Machine  Machine           `json:"machine"`
	Database string            `json:"database"`
	Edition  string            `json:"edition"`
	Versions map[string]string `json:"versions"`
	Settings map[string]string `json:"settings"`
	Options  any               `json:"options"`
	Seconds  float64           `json:"seconds"`
	Rows     []Row             `json:"rows"`
}

// Machine describes the hardware.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	Memory      string `json:"memory"`
	Kernel      string `json:"kernel"`
	LoadAverage string `json:"load_average_at_start"` // load of other programs
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	return Machine{
		CPU: harness.SystemField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		Memory: harness.SystemField("/proc/meminfo", "MemTotal"),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), LoadAverage: firstLine("/proc/loadavg"),
	}
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // A constant.
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// Print writes the report as a table.
func (r *Report) Print(out io.Writer) error {
	m := &r.Machine
	_, err := fmt.Fprintf(out, "%s, %d cores, %s, load average %s\n%s\n\n",
		m.CPU, m.Cores, m.Memory, m.LoadAverage, r.Database)
	if err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\tworkload\tlayout\tours\tbar\tratio\t(spread)\treach\taim\tverdict\t") // See Flush.
	for i := range r.Rows {
		_, _ = fmt.Fprintln(w, r.Rows[i].line()) // Flush returns the error.
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	if _, err := io.WriteString(out, r.compareLayouts()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// compareLayouts describes the effect of the physical layout of the readings on both sides.
func (r *Report) compareLayouts() string {
	var lines strings.Builder
	for i := range r.Rows {
		for j := range r.Rows[:i] {
			first, second := &r.Rows[j], &r.Rows[i]
			if first.ID != second.ID || first.Workload != second.Workload || first.Layout == second.Layout ||
				len(second.Baseline) == 0 {
				continue
			}
			ours, baseline := second.gain(second.Ours, first.Ours), second.gain(second.Baseline, first.Baseline)
			_, _ = fmt.Fprintf(&lines, "%s instead of %s makes ours %.3gx as fast, the bar %.3gx: %s %s\n",
				second.Layout, first.Layout, ours, baseline, second.ID, second.Workload)
		}
	}
	return lines.String()
}

func (r *Row) gain(second, first Sample) float64 {
	if r.Kind != Rate {
		return first.Median() / second.Median()
	}
	return second.Median() / first.Median()
}

func (r *Row) line() string {
	ratio, spread, baseline := None, "", None
	if len(r.Ratios) > 0 {
		ratio = r.formatRatio(r.Ratios.Median())
		spread = fmt.Sprintf("(%.3g to %.3g)", slices.Min(r.Ratios), slices.Max(r.Ratios))
	}
	if len(r.Baseline) > 0 {
		baseline = fmt.Sprintf("%s %s", amount(r.Baseline.Median()), r.Unit)
	}
	cells := []string{
		r.ID, r.Workload, r.Layout, fmt.Sprintf("%s %s", amount(r.Ours.Median()), r.Unit), baseline, ratio, spread,
		r.limit(r.Minimum), r.limit(r.Target), r.Verdict, r.note(),
	}
	return strings.Join(cells, "\t")
}

// note returns the note with the time of the database.
func (r *Row) note() string {
	if len(r.Database) == 0 {
		return r.Note
	}
	database := fmt.Sprintf("database %.3g ms", r.Database.Median())
	if r.Note == "" {
		return database
	}
	return database + "; " + r.Note
}

func (r *Row) limit(x float64) string {
	if x == 0 {
		return None
	}
	return r.formatRatio(x)
}

func (r *Row) formatRatio(x float64) string {
	if r.Kind == Bound {
		return fmt.Sprintf("%.3g %s", x, r.Unit)
	}
	return fmt.Sprintf("%.3gx", x)
}

// amount formats about three digits without an exponent.
func amount(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.4f", x)
}
