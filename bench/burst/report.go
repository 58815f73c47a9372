package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the figures of a trial, and what they were taken on.
type report struct {
	At       time.Time `json:"at"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	LoadAvg  string    `json:"load_average_at_start"` // of what else the machine did
	Database string    `json:"database"`
	Options  options   `json:"options"`
	Readings int       `json:"readings_sent"`
	Distinct int       `json:"readings_distinct"`
	Bytes    int       `json:"bytes_sent"`

	Burst   burstResult     `json:"burst"`
	Scaling []workersResult `json:"scaling"`
	Churn   churnResult     `json:"churn"`
}

type burstResult struct {
	Accepted     float64     `json:"accepted_seconds"` // until the receiver had confirmed all
	Drained      float64     `json:"drained_seconds"`  // until all of it was stored
	Rate         int         `json:"readings_per_second"`
	Before       freshResult `json:"fresh_before"`
	During       freshResult `json:"fresh_while_uploading"` // until the receiver had confirmed all
	After        freshResult `json:"fresh_while_draining"`  // until all was stored
	Refused      int64       `json:"answers_503"`
	Looks        int         `json:"looks_at_current"`
	WrongStates  int         `json:"wrong_states_in_current"`
	WorkerPeak   float64     `json:"worker_peak_mib"`
	ReceiverPeak float64     `json:"receiver_peak_mib"`
	Verdict      verdict     `json:"verdict"`
}

// freshResult is of the uploads of devices that were never offline.
type freshResult struct {
	Uploads   int          `json:"uploads"`
	Confirmed spreadResult `json:"upload_to_202"`
	Visible   spreadResult `json:"upload_to_visible"`
}

type spreadResult struct {
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
	Max float64 `json:"max_seconds"`
}

type workersResult struct {
	Workers int     `json:"workers"`
	Seconds float64 `json:"seconds"` // from their start
	Rate    int     `json:"readings_per_second"`
	Stall   float64 `json:"longest_stall_seconds"`
	Again   int     `json:"deliveries_again"`
	Peak    float64 `json:"worker_peak_mib"`
	Verdict verdict `json:"verdict"`
}

type churnResult struct {
	Joined      int     `json:"joined"`
	Left        int     `json:"left"`
	SlowestExit float64 `json:"slowest_exit_seconds"`
	Stall       float64 `json:"longest_stall_seconds"`
	Again       int     `json:"deliveries_again"`
	Verdict     verdict `json:"verdict"`
}

func newReport(o options, l *load) *report {
	return &report{
		At: time.Now().UTC().Truncate(time.Second), CPU: cpu(), Cores: cores(), LoadAvg: firstLine("/proc/loadavg"),
		Options: o, Readings: l.readings, Distinct: l.distinct, Bytes: l.bytes,
	}
}

// cpu is the processor's name, where the system tells.
func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // A constant.
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	b := &r.Burst
	say("%s, %d cores, load average %s, %s", r.CPU, r.Cores, r.LoadAvg, r.Database)
	say("%d devices, %g days, order %s: %d readings sent, %d distinct, %d MB", r.Options.Devices, r.Options.Days,
		r.Options.Order, r.Readings, r.Distinct, r.Bytes/1e6)
	say("\nlate burst, %d workers\taccepted s\tdrained s\treadings/s\t503s\tworker MiB\treceiver MiB\tlooks\twrong\t",
		r.Options.Attending)
	say("\t%.1f\t%.1f\t%d\t%d\t%.1f\t%.1f\t%d\t%d\t", b.Accepted, b.Drained, b.Rate, b.Refused, b.WorkerPeak,
		b.ReceiverPeak, b.Looks, b.WrongStates)
	say("\nof other devices\tuploads\tto 202: p50 s\tp99 s\tto visible: p50 s\tp99 s\tmax s\t")
	for i, f := range []freshResult{b.Before, b.During, b.After} {
		say("%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t", []string{"alone", "while it is uploaded", "while it is stored"}[i],
			f.Uploads, f.Confirmed.P50, f.Confirmed.P99, f.Visible.P50, f.Visible.P99, f.Visible.Max)
	}
	say("\nworkers\tseconds\treadings/s\tlongest stall s\tdelivered again\tpeak MiB\t")
	for _, s := range r.Scaling {
		say("%d\t%.1f\t%d\t%.3f\t%d\t%.1f\t", s.Workers, s.Seconds, s.Rate, s.Stall, s.Again, s.Peak)
	}
	say("\njoined\tleft\tslowest exit s\tlongest stall s\tdelivered again\t")
	say("%d\t%d\t%.3f\t%.3f\t%d\t", r.Churn.Joined, r.Churn.Left, r.Churn.SlowestExit, r.Churn.Stall, r.Churn.Again)
	_ = w.Flush() // Who cannot read it has the file.
	for _, v := range r.verdicts() {
		_, _ = fmt.Fprintf(out, "%d lost, %d wrong, %d phantom, %d rejects\n", v.Lost, v.Wrong, v.Phantom, v.Rejects)
	}
}

func (r *report) verdicts() (list []verdict) {
	list = append(list, r.Burst.Verdict, r.Churn.Verdict)
	for _, s := range r.Scaling {
		list = append(list, s.Verdict)
	}
	return list
}

// verdict is an error where anything was lost or wrong.
func (r *report) verdict() error {
	for _, v := range r.verdicts() {
		if !v.clean() {
			return errors.New("what is stored is not what was sent")
		}
	}
	if r.Burst.WrongStates > 0 {
		return errors.New("/devices/current was wrong")
	}
	return nil
}

// write keeps the figures.
func (r *report) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	path := filepath.Join(dir, "burst.json")
	err = os.MkdirAll(dir, 0o750) //nolint:gosec // Whoever runs the trial says where.
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o600) //nolint:gosec // As above.
	}
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}
