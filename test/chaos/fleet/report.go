package fleet

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/test/harness"
)

// Report is the result of a trial.
type Report struct {
	harness.Conditions

	Verdict Verdict `json:"verdict"`
	// Findings are unexpected events.
	Findings []string       `json:"findings"`
	Failed   int            `json:"failed_requests"`
	Failures map[string]int `json:"failures"` // by kind of request and reason

	Options      Options            `json:"options"`
	Accepted     int64              `json:"accepted_uploads"`
	Registered   time.Duration      `json:"registered_ns"`
	WarmUp       time.Duration      `json:"warm_up_ns"` // until each team was answered
	Late         time.Duration      `json:"late_ns"`    // until everything of the late devices was confirmed
	Refused      int64              `json:"refused"`    // requests of late devices that a receiver asked to repeat
	Sent         time.Duration      `json:"sent_ns"`    // until the last upload was confirmed
	Settled      time.Duration      `json:"settled_ns"` // from then until all were committed
	Latencies    map[kind]Latency   `json:"latencies"`
	Samples      []Sample           `json:"samples"`
	PerDeviceDay map[string]float64 `json:"per_device_and_day"`
}

func newReport(e *env) *Report {
	return &Report{
		Conditions: harness.Now(e.database.String()), Options: e.options,
	}
}

// perDeviceDay returns what a device needs in a day: bytes on disk, and seconds of the processor by process. It is what
// the trial used per upload and per reading, times those of a day.
func perDeviceDay(end *Sample, uploads, readings int64) map[string]float64 {
	const daily = 288
	per := map[string]float64{}
	if uploads == 0 || readings == 0 {
		return per
	}
	for name, bytes := range map[string]int64{
		"table bytes": end.Disk.Table, "index bytes": end.Disk.Indexes, "wal bytes": end.Disk.WAL,
	} {
		per[name] = round(float64(bytes) / float64(readings) * daily)
	}
	per["stream bytes"] = round(float64(end.Disk.Stream) / float64(uploads) * daily)
	for name, p := range end.Processes {
		role, _, _ := strings.Cut(name, " ")
		per[role+" cpu ms"] += p.CPU * 1000 / float64(uploads) * daily
	}
	for name, x := range per {
		per[name] = round(x)
	}
	return per
}

// Failure returns nil if every reading is stored as it was sent, no request failed, and there are no findings.
func (r *Report) Failure() error {
	v := &r.Verdict
	if v.Lost+v.Duplicated+v.Wrong == 0 && r.Failed == 0 && len(r.Findings) == 0 {
		return nil
	}
	reasons := slices.Clone(r.Findings)
	for _, reason := range slices.Sorted(maps.Keys(r.Failures)) {
		reasons = append(reasons, fmt.Sprintf("%d x %s", r.Failures[reason], reason))
	}
	return fmt.Errorf("%w:\n%s", harness.ErrFailed, strings.Join(reasons, "\n"))
}

// Print writes the report as tables, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	var text bytes.Buffer
	o := &r.Options
	fmt.Fprintln(&text, r.String())
	fmt.Fprintf(&text, "%d devices of %d teams, registered in %s; %d uploads, %d readings; %s to send, %s to commit the "+
		"rest\n\n", o.Devices, o.Teams, harness.Seconds(r.Registered), r.Accepted, r.Verdict.Readings,
		harness.Seconds(r.Sent), harness.Seconds(r.Settled))
	if o.Late > 0 {
		fmt.Fprintf(&text, "%d devices came back after %s, %s after the start: confirmed in %s, %d requests repeated\n\n",
			o.Late, o.LateFor, o.LateAfter, harness.Seconds(r.Late), r.Refused)
	}
	r.printSamples(&text)
	r.printProcesses(&text)
	r.printLatencies(&text)
	fmt.Fprintf(&text, "\nper device and day:")
	for _, name := range slices.Sorted(maps.Keys(r.PerDeviceDay)) {
		fmt.Fprintf(&text, " %s %.0f,", name, r.PerDeviceDay[name])
	}
	v := &r.Verdict
	fmt.Fprintf(&text, "\n\n%d lost, %d duplicated, %d wrong, %d failed requests, p99 visible %.1fs\n",
		v.Lost, v.Duplicated, v.Wrong, r.Failed, r.Latencies[visible].P99)
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// table writes rows of cells in columns. Writing to a buffer cannot fail.
func table(text *bytes.Buffer, rows [][]string) {
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush()
}

func (r *Report) printSamples(text *bytes.Buffer) {
	rows := [][]string{{
		"s", "accepted/s", "committed/s", "lag", "failed", "p99 s: upload", "current", "export", "page", "visible p50 s",
		"p99 s", "MB: table", "indexes", "wal", "stream",
	}}
	for i := range r.Samples {
		s := &r.Samples[i]
		row := []string{
			fmt.Sprintf("%.0f", s.Seconds), fmt.Sprintf("%.1f", s.Accepted), fmt.Sprintf("%.1f", s.Committed),
			fmt.Sprint(s.Lag), fmt.Sprint(s.Failed),
		}
		for _, k := range []kind{uploads, polls, exports, pages} {
			row = append(row, fmt.Sprintf("%.3f", s.Latencies[k].P99))
		}
		row = append(row, fmt.Sprintf("%.3f", s.Latencies[visible].P50), fmt.Sprintf("%.3f", s.Latencies[visible].P99))
		for _, bytes := range []int64{s.Disk.Table, s.Disk.Indexes, s.Disk.WAL, s.Disk.Stream} {
			row = append(row, fmt.Sprintf("%.1f", float64(bytes)/1e6))
		}
		rows = append(rows, row)
	}
	table(text, rows)
}

// printProcesses prints the memory and the busy cores of each process over time.
func (r *Report) printProcesses(text *bytes.Buffer) {
	names := slices.Sorted(maps.Keys(r.Samples[0].Processes))
	rows := [][]string{append([]string{"s", "MiB, cores:"}, names...)}
	for i := range r.Samples {
		row := []string{fmt.Sprintf("%.0f", r.Samples[i].Seconds), ""}
		for _, name := range names {
			p := r.Samples[i].Processes[name]
			row = append(row, fmt.Sprintf("%.0f, %.2f", p.MiB, p.Cores))
		}
		rows = append(rows, row)
	}
	text.WriteString("\n")
	table(text, rows)
}

func (r *Report) printLatencies(text *bytes.Buffer) {
	rows := [][]string{{"request", "answered", "p50 s", "p99 s", "max s"}}
	for _, k := range kinds {
		l := r.Latencies[k]
		rows = append(rows, []string{
			string(k), fmt.Sprint(l.Requests), fmt.Sprintf("%.3f", l.P50), fmt.Sprintf("%.3f", l.P99),
			fmt.Sprintf("%.3f", l.Max),
		})
	}
	text.WriteString("\n")
	table(text, rows)
}
