package burst

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// Report is the result of a trial.
type Report struct {
	Started  time.Time        `json:"started"`
	Hardware harness.Hardware `json:"hardware"`
	LoadAvg  string           `json:"load_average_at_start"`
	Options  Options          `json:"options"`
	Readings int              `json:"readings_sent"`
	Distinct int              `json:"readings_distinct"`
	Bytes    int              `json:"bytes_sent"`

	Burst   LateResult      `json:"burst"`
	Scaling []WorkersResult `json:"scaling"`
	Churn   ChurnResult     `json:"churn"`
}

// LateResult is the result of the burst through the receiver.
type LateResult struct {
	Accepted     float64        `json:"accepted_seconds"` // until the receiver had confirmed everything
	Drained      float64        `json:"drained_seconds"`  // until everything was stored
	Rate         int            `json:"readings_per_second"`
	Before       FreshResult    `json:"fresh_before"`
	During       FreshResult    `json:"fresh_while_uploading"` // until the receiver had confirmed everything
	After        FreshResult    `json:"fresh_while_draining"`  // until everything was stored
	Refused      int64          `json:"answers_503"`
	Checks       int            `json:"checks_of_current"`
	WrongStates  int            `json:"wrong_states_in_current"`
	WorkerPeak   float64        `json:"worker_peak_mib"`
	ReceiverPeak float64        `json:"receiver_peak_mib"`
	Verdict      ledger.Verdict `json:"verdict"`
}

// FreshResult is the latency of uploads of devices that were never offline.
type FreshResult struct {
	Uploads   int       `json:"uploads"`
	Confirmed Quantiles `json:"upload_to_202"`
	Visible   Quantiles `json:"upload_to_visible"`
}

// Quantiles describe a distribution of durations.
type Quantiles struct {
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
	Max float64 `json:"max_seconds"`
}

// BacklogResult is the result of processing a backlog.
type BacklogResult struct {
	Seconds      float64        `json:"seconds"` // from the start of the first workers
	Rate         int            `json:"readings_per_second"`
	Stall        float64        `json:"longest_stall_seconds"`
	Redeliveries int            `json:"redeliveries"`
	Peak         float64        `json:"worker_peak_mib"`
	Verdict      ledger.Verdict `json:"verdict"`
}

// WorkersResult is the result of a backlog with a fixed number of workers.
type WorkersResult struct {
	BacklogResult

	Workers int `json:"workers"`
}

// ChurnResult is the result of a backlog with workers that join and leave.
type ChurnResult struct {
	BacklogResult

	Joined      int     `json:"joined"`
	Left        int     `json:"left"`
	SlowestExit float64 `json:"slowest_exit_seconds"`
}

func newReport(o Options, l *load, database string) *Report {
	loadAvg, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		loadAvg = []byte("unknown")
	}
	return &Report{
		Started: time.Now().UTC().Truncate(time.Second), Hardware: harness.ThisMachine(database),
		LoadAvg: strings.TrimSpace(string(loadAvg)), Options: o, Readings: l.readings, Distinct: l.distinct, Bytes: l.bytes,
	}
}

// verdict adds the verdicts of all phases.
func (r *Report) verdict() (v ledger.Verdict) {
	v.Add(r.Burst.Verdict)
	for i := range r.Scaling {
		v.Add(r.Scaling[i].Verdict)
	}
	v.Add(r.Churn.Verdict)
	return v
}

// Failure returns nil if everything was stored as it was sent, in all phases, and /devices/current was right.
func (r *Report) Failure() error {
	if v := r.verdict(); !v.Clean() {
		return fmt.Errorf("%w:\n%s", harness.ErrFailed, strings.Join(v.Examples, "\n"))
	}
	if r.Burst.WrongStates > 0 {
		return errors.Join(harness.ErrFailed, errors.New("/devices/current was wrong"))
	}
	return nil
}

// Print writes the report as tables, with the sum of all verdicts in the last line.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush returns the error.
	b := &r.Burst
	line("%s, %d cores, load average %s, %s", r.Hardware.CPU, r.Hardware.CPUs, r.LoadAvg, r.Hardware.Database)
	line("%d devices, %g days: %d readings sent, %d distinct, %d MB", r.Options.Devices, r.Options.Days,
		r.Readings, r.Distinct, r.Bytes/1e6)
	line("\nlate burst, %d workers\taccepted s\tdrained s\treadings/s\t503s\tworker MiB\treceiver MiB\tchecks\twrong\t",
		r.Options.BurstWorkers)
	line("\t%.1f\t%.1f\t%d\t%d\t%.1f\t%.1f\t%d\t%d\t", b.Accepted, b.Drained, b.Rate, b.Refused, b.WorkerPeak,
		b.ReceiverPeak, b.Checks, b.WrongStates)
	line("\nother devices\tuploads\tto 202: p50 s\tp99 s\tto visible: p50 s\tp99 s\tmax s\t")
	for i, f := range []FreshResult{b.Before, b.During, b.After} {
		line("%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t", []string{"before", "while it is uploaded", "while it is stored"}[i],
			f.Uploads, f.Confirmed.P50, f.Confirmed.P99, f.Visible.P50, f.Visible.P99, f.Visible.Max)
	}
	line("\nworkers\tseconds\treadings/s\tlongest stall s\tredeliveries\tpeak MiB\t")
	for _, s := range r.Scaling {
		line("%d\t%.1f\t%d\t%.3f\t%d\t%.1f\t", s.Workers, s.Seconds, s.Rate, s.Stall, s.Redeliveries, s.Peak)
	}
	line("\njoined\tleft\tslowest exit s\tlongest stall s\tredeliveries\t")
	c := &r.Churn
	line("%d\t%d\t%.3f\t%.3f\t%d\t", c.Joined, c.Left, c.SlowestExit, c.Stall, c.Redeliveries)
	err := w.Flush()
	v := r.verdict()
	_, last := fmt.Fprintln(out, v.String())
	if err := errors.Join(err, last); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func quantiles(durations []time.Duration) Quantiles {
	slices.Sort(durations)
	at := func(q float64) float64 {
		if len(durations) == 0 {
			return 0
		}
		return seconds(durations[min(len(durations)-1, int(q*float64(len(durations))))])
	}
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
