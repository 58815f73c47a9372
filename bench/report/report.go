package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a run: its rows, and what they were taken on.
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

// Machine is the hardware.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	Memory      string `json:"memory"`
	Kernel      string `json:"kernel"`
	LoadAverage string `json:"load_average_at_start"` // of what else the machine did
}

// ThisMachine looks.
func ThisMachine() Machine {
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), LoadAverage: firstLine("/proc/loadavg"),
	}
}

const unknown = "unknown"

// field is a value of one of the kernel's tables.
func field(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // A constant.
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // A constant.
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// Print writes the table.
func (r *Report) Print(out io.Writer) error {
	m := &r.Machine
	_, err := fmt.Fprintf(out, "%s, %d cores, %s, load average %s\n%s\n\n",
		m.CPU, m.Cores, m.Memory, m.LoadAverage, r.Database)
	if err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\tworkload\tlayout\tours\tbar\tratio\t(spread)\treach\taim\tverdict\t") // Flush tells.
	for i := range r.Rows {
		_, _ = fmt.Fprintln(w, r.Rows[i].line()) // As above.
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	for _, line := range r.layouts() {
		_, _ = fmt.Fprintln(out, line) // As above.
	}
	return nil
}

// layouts tells what the physical order of the readings is worth, to both sides.
func (r *Report) layouts() (lines []string) {
	for i := range r.Rows {
		for j := range r.Rows[:i] {
			first, then := &r.Rows[j], &r.Rows[i]
			if first.ID != then.ID || first.Workload != then.Workload || first.Layout == then.Layout || len(then.Bar) == 0 {
				continue
			}
			ours, bar := then.gain(then.Ours, first.Ours), then.gain(then.Bar, first.Bar)
			lines = append(lines, fmt.Sprintf("%s instead of %s makes ours %.3gx as fast, the bar %.3gx: %s %s",
				then.Layout, first.Layout, ours, bar, then.ID, then.Workload))
		}
	}
	return lines
}

func (r *Row) gain(then, first Sample) float64 {
	if r.Kind == Time {
		return first.Median() / then.Median()
	}
	return then.Median() / first.Median()
}

func (r *Row) line() string {
	ratio, spread, bar := None, "", None
	if len(r.Ratios) > 0 {
		ratio = r.times(r.Ratios.Median())
		spread = fmt.Sprintf("(%.3g to %.3g)", slices.Min(r.Ratios), slices.Max(r.Ratios))
	}
	if len(r.Bar) > 0 {
		bar = fmt.Sprintf("%s %s", amount(r.Bar.Median()), r.Unit)
	}
	cells := []string{
		r.ID, r.Workload, r.Layout, fmt.Sprintf("%s %s", amount(r.Ours.Median()), r.Unit), bar, ratio, spread,
		r.bound(r.Reach), r.bound(r.Aim), r.Verdict, r.Note,
	}
	return strings.Join(cells, "\t")
}

func (r *Row) bound(x float64) string {
	if x == 0 {
		return None
	}
	return r.times(x)
}

func (r *Row) times(x float64) string {
	if r.Kind == Bound {
		return fmt.Sprintf("%.3g %s", x, r.Unit)
	}
	return fmt.Sprintf("%.3gx", x)
}

// amount prints some three digits, without an exponent.
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

// Save keeps the report.
func (r *Report) Save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // Whoever runs it says where.
	}
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // As above.
	}
	if err != nil {
		return fmt.Errorf("keeping the figures: %w", err)
	}
	return nil
}
