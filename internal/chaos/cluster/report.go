package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/localdb"
)

// Report is what a trial found out.
type Report struct {
	Verdict ledger.Verdict `json:"verdict"`
	// Findings are what should not have happened.
	Findings []string `json:"findings"`

	Started  time.Time      `json:"started"`
	Options  Options        `json:"options"`
	Hardware trial.Hardware `json:"hardware"`
	Calm     Outage         `json:"calm"` // the longest of all times between two faults
	Outages  []Outage       `json:"outages"`

	Uploads  ledger.Tally  `json:"uploads"`
	Visible  trial.Visible `json:"time_to_visible"`
	Rows     int           `json:"rows"`
	Rejects  int           `json:"rejects"`
	Sent     time.Duration `json:"sent_ns"`
	Settled  time.Duration `json:"settled_ns"`
	Replayed time.Duration `json:"replayed_ns"`
}

// Outage is what a fault cost: the longest times in which something did not work.
type Outage struct {
	Event

	Receiver time.Duration `json:"without_202_ns"`
	Stream   time.Duration `json:"without_stream_acknowledgement_ns"`
	Commits  time.Duration `json:"without_commit_ns"`
	Answers  time.Duration `json:"without_200_ns"` // of the API
	// Failed are the requests to the API that failed, by what the client saw.
	Failed map[string]int `json:"failed_requests,omitempty"`
	// FirstCommit is from the promotion to the first batch that the new primary stored.
	FirstCommit time.Duration `json:"first_commit_ns,omitempty"`
}

// outage looks at a span.
func (r *run) outage(from, to time.Time) Outage {
	return Outage{
		Receiver: r.receiver.outage(from, to), Stream: r.stream.outage(from, to),
		Commits: r.commits.outage(from, to), Answers: r.prober.gauge.outage(from, to),
		Failed: r.prober.gauge.failures(from, to),
	}
}

func (r *run) outages() (list []Outage, calm Outage) {
	before := r.started
	calm.Failed = map[string]int{}
	for _, event := range r.faults.events {
		o := r.outage(event.Began, event.Whole)
		o.Event = *event
		if !event.Promoted.IsZero() {
			o.FirstCommit = r.commits.first(event.Promoted).Sub(event.Promoted)
		}
		list = append(list, o)
		calm.atLeast(r.outage(before, event.Began))
		before = event.Whole
	}
	return list, calm
}

func (o *Outage) atLeast(other Outage) {
	o.Receiver, o.Stream = max(o.Receiver, other.Receiver), max(o.Stream, other.Stream)
	o.Commits, o.Answers = max(o.Commits, other.Commits), max(o.Answers, other.Answers)
	for what, n := range other.Failed {
		o.Failed[what] += n
	}
}

func (r *run) report(ctx context.Context) (*Report, error) {
	info, err := localdb.Describe(ctx, r.trial.DatabaseURL())
	if err != nil {
		return nil, err
	}
	report := &Report{
		Verdict: r.judge.Verdict, Findings: r.Findings(), Started: r.started.UTC().Truncate(time.Second),
		Options: r.options, Hardware: trial.Machine(info.String()), Uploads: r.judge.Ledger.Tally(),
		Visible: r.watcher.Visible(), Rows: r.judge.Rows, Rejects: r.judge.Rejects,
		Sent: r.sent, Settled: r.settled, Replayed: r.judge.Replayed,
	}
	report.Outages, report.Calm = r.outages()
	return report, nil
}

// ErrFailed says that a trial found something.
var ErrFailed = errors.New("the trial failed")

// Failure is nil when the ledger and the tables agree and nothing else was found.
func (r *Report) Failure() error {
	if r == nil || r.Verdict.Clean() && len(r.Findings) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrFailed, strings.Join(append(r.Verdict.Examples, r.Findings...), "\n"))
}

// Save writes the report as JSON.
func (r *Report) Save(path string) error { return trial.Save(path, r) }

// Print writes the report as tables, and the verdict as its last line.
func (r *Report) Print(out io.Writer) error {
	var text bytes.Buffer
	r.printTrial(&text)
	r.printOutages(&text)
	_, _ = fmt.Fprintln(&text, r.Verdict.String()) // A buffer takes everything.
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func (r *Report) printTrial(text *bytes.Buffer) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(table, name+"\t"+format+"\n", args...)
	}
	standby := "synchronous"
	if r.Options.Asynchronous {
		standby = "asynchronous and cut off"
	}
	row("seed", "%d", r.Options.Seed)
	row("machine", "%d × %s, %s, %s", r.Hardware.CPUs, r.Hardware.CPU, r.Hardware.System, r.Hardware.Go)
	row("database", "%s; a primary and a standby, %s", r.Hardware.Database, standby)
	row("queue", "%d × nats-server %s, %d copies, sync always", queueSize, r.Hardware.NATS, queueSize)
	row("service", "%d API, %d receivers, %d workers", apiCount, receiverCount, workerCount)
	row("uploads", "%d ok, %d failed, %d unknown (%d of them stored), in %d attempts; %d were not needed",
		r.Uploads.OK, r.Uploads.Failed, r.Uploads.Unknown, r.Uploads.UnknownStored, r.Uploads.Attempts, r.Uploads.Unsent)
	row("messages in the stream", "%d, %d of them repeat an upload, %d beyond the attempts",
		r.Uploads.Messages, r.Uploads.Repeated, r.Uploads.Excess)
	row("rows", "%d readings, %d rejects", r.Rows, r.Rejects)
	row("time to visible", "p50 %s, p99 %s, most %s, of %d uploads",
		seconds(r.Visible.P50), seconds(r.Visible.P99), seconds(r.Visible.Most), r.Visible.Uploads)
	row("time", "%s to send, %s to settle, %s to replay the stream",
		seconds(r.Sent), seconds(r.Settled), seconds(r.Replayed))
	_ = table.Flush()
}

func (r *Report) printOutages(text *bytes.Buffer) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nlongest time without\ta 202\tstream ack\tcommit\ta 200\tGETs failed\twhole after\t")
	row := func(what string, o *Outage, whole string, notes ...string) {
		failed := 0
		for _, what := range slices.Sorted(maps.Keys(o.Failed)) {
			failed += o.Failed[what]
			notes = append(notes, fmt.Sprintf("%d × %s", o.Failed[what], what))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", what, seconds(o.Receiver), seconds(o.Stream),
			seconds(o.Commits), seconds(o.Answers), failed, whole, strings.Join(notes, ", "))
	}
	row("no fault", &r.Calm, "")
	for i := range r.Outages {
		o := &r.Outages[i]
		notes := append([]string{o.Whom}, o.Notes...)
		if o.FirstCommit > 0 {
			notes = append(notes, "first commit "+seconds(o.FirstCommit)+" after the promotion")
		}
		row(o.Fault, o, seconds(o.Whole.Sub(o.Began)), notes...)
	}
	_ = table.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
