package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/chaos/trial"
)

// Report is what a trial found out.
type Report struct {
	Verdict ledger.Verdict `json:"verdict"`
	// Findings are what should not have happened and what was planned and did not happen.
	Findings []string `json:"findings"`

	Started  time.Time      `json:"started"`
	Options  Options        `json:"options"`
	Hardware trial.Hardware `json:"hardware"`
	Faults   Counts         `json:"faults"` // that happened
	// Hits are the kills and halts that met messages in flight, Aimed all of them.
	Hits  int `json:"hits"`
	Aimed int `json:"aimed"`

	Uploads ledger.Tally  `json:"uploads"`
	Rows    int           `json:"rows"`
	Rejects int           `json:"rejects"`
	Visible trial.Visible `json:"time_to_visible"`
	// Redeliveries is how often a message was given to a worker again, as far as the queue remembers.
	Redeliveries int64         `json:"redeliveries"`
	Sent         time.Duration `json:"sent_ns"`     // until the last upload had its outcome
	Settled      time.Duration `json:"settled_ns"`  // from then on
	Replayed     time.Duration `json:"replayed_ns"` // the whole stream once more
	Plan         []Done        `json:"plan"`
}

func (t *run) report() *Report {
	tally := t.judge.Ledger.Tally()
	r := &Report{
		Verdict: t.judge.Verdict, Findings: t.Findings(), Started: t.started.UTC().Truncate(time.Second),
		Options: t.options, Hardware: trial.Machine(t.database.info.String()), Faults: t.injector.counts(),
		Uploads: tally, Rows: t.judge.Rows, Rejects: t.judge.Rejects, Visible: t.watcher.Visible(),
		Redeliveries: int64(t.deliveries) - int64(tally.Messages), //nolint:gosec // Both are counts of messages.
		Sent:         t.sent, Settled: t.settled, Replayed: t.judge.Replayed, Plan: t.injector.done,
	}
	r.Hits, r.Aimed = t.injector.hits()
	if planned := t.plan.counts(); r.Faults != planned {
		r.Findings = append(r.Findings, fmt.Sprintf("not all of the plan was carried out: %+v of %+v", r.Faults, planned))
	}
	return r
}

// ErrFailed says that a trial found something.
var ErrFailed = errors.New("the trial failed")

// Failure is nil when the ledger and the tables agree and the trial did all that it was to do.
func (r *Report) Failure() error {
	if r == nil {
		return nil
	}
	if r.Verdict.Clean() && len(r.Findings) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrFailed, strings.Join(append(r.Verdict.Examples, r.Findings...), "\n"))
}

// Save writes the report as JSON.
func (r *Report) Save(path string) error { return trial.Save(path, r) }

// Print writes the report as a table, and the verdict as its last line.
func (r *Report) Print(out io.Writer) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(table, name+"\t"+format+"\n", args...) // A buffer takes everything.
	}
	second := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	row("seed", "%d", r.Options.Seed)
	row("machine", "%d × %s, %s, %s", r.Hardware.CPUs, r.Hardware.CPU, r.Hardware.System, r.Hardware.Go)
	row("database", "%s", r.Hardware.Database)
	row("queue", "nats-server %s, sync always", r.Hardware.NATS)
	row("workers", "%d", r.Options.Workers)
	row("kills of workers", "%d", r.Faults.WorkerKills)
	row("kills of the receiver", "%d", r.Faults.ReceiverKills)
	row("kills of nats-server", "%d", r.Faults.QueueKills)
	row("kills of PostgreSQL", "%d, and %d of one backend", r.Faults.DatabaseKills, r.Faults.BackendKills)
	row("workers halted", "%d, for %s each", r.Faults.Halts, r.Options.Halt)
	row("lines spoilt", "%d", r.Faults.Poisons)
	row("faults that met messages in flight", "%d of %d kills and halts", r.Hits, r.Aimed)
	row("uploads", "%d ok, %d failed, %d unknown (%d of them stored), in %d attempts",
		r.Uploads.OK, r.Uploads.Failed, r.Uploads.Unknown, r.Uploads.UnknownStored, r.Uploads.Attempts)
	row("messages in the stream", "%d, %d of them repeat an upload, %d beyond the attempts",
		r.Uploads.Messages, r.Uploads.Repeated, r.Uploads.Excess)
	row("redeliveries to workers", "%d", r.Redeliveries)
	row("rows", "%d readings, %d rejects", r.Rows, r.Rejects)
	row("time to visible", "p50 %s, p99 %s, most %s, of %d uploads",
		second(r.Visible.P50), second(r.Visible.P99), second(r.Visible.Most), r.Visible.Uploads)
	row("time", "%s to send, %s to settle, %s to replay the stream", second(r.Sent), second(r.Settled), second(r.Replayed))
	_ = table.Flush() // Likewise.
	_, _ = fmt.Fprintln(&text, r.Verdict.String())
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
