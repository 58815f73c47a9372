package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/harness"
)

// Report is the result of a trial.
type Report struct {
	harness.Report
	Options Options  `json:"options"`
	NoFault Outage   `json:"no_fault"` // maximum of all times between two faults
	Outages []Outage `json:"outages"`
}

// Outage is the effect of a fault: the longest times without a success.
type Outage struct {
	Event

	Receiver time.Duration `json:"without_202_ns"`
	Stream   time.Duration `json:"without_stream_acknowledgement_ns"`
	Commits  time.Duration `json:"without_commit_ns"`
	API      time.Duration `json:"without_200_ns"`
	// Failed counts the failed API requests by the error that the client saw.
	Failed map[string]int `json:"failed_requests,omitempty"`
	// FirstCommit is the time from the promotion to the first batch that the new primary stored.
	FirstCommit time.Duration `json:"first_commit_ns,omitempty"`
}

// outage returns the longest times without a success between two instants.
func (r *run) outage(from, to time.Time) Outage {
	return Outage{
		Receiver: r.receiver.outage(from, to), Stream: r.stream.outage(from, to),
		Commits: r.commits.outage(from, to), API: r.prober.successes.outage(from, to),
		Failed: r.prober.successes.failures(from, to),
	}
}

func (r *run) outages() (list []Outage, noFault Outage) {
	last := r.started
	noFault.Failed = map[string]int{}
	for _, event := range r.faults.events {
		o := r.outage(event.Began, event.Recovered)
		o.Event = *event
		if !event.Promoted.IsZero() {
			o.FirstCommit = r.commits.firstAfter(event.Promoted).Sub(event.Promoted)
		}
		list = append(list, o)
		noFault.merge(r.outage(last, event.Began))
		last = event.Recovered
	}
	return list, noFault
}

func (o *Outage) merge(other Outage) {
	o.Receiver, o.Stream = max(o.Receiver, other.Receiver), max(o.Stream, other.Stream)
	o.Commits, o.API = max(o.Commits, other.Commits), max(o.API, other.API)
	for err, n := range other.Failed {
		o.Failed[err] += n
	}
}

func (r *run) report(ctx context.Context) (*Report, error) {
	info, err := postgres.Describe(ctx, r.service.DatabaseURL())
	if err != nil {
		return nil, err
	}
	report := &Report{Report: r.trial.Result(info.String()), Options: r.options}
	report.Outages, report.NoFault = r.outages()
	return report, nil
}

// Print writes the report as tables, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	standby := "synchronous"
	if r.Options.Asynchronous {
		standby = "asynchronous and disconnected"
	}
	return r.Report.Print(out, []harness.Line{
		harness.Linef("seed", "%d", r.Options.Seed),
		harness.Linef("database", "%s; a primary and a standby, %s", r.Hardware.Database, standby),
		harness.Linef("queue", "%d × nats-server %s, a replica on each, sync always", len(queueMembers),
			r.Hardware.NATS),
		harness.Linef("service", "%d API, %d receivers, %d workers", apiRole.count, receiverRole.count,
			workerRole.count),
	}, r.outageTable())
}

func (r *Report) outageTable() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nlongest time without\ta 202\tstream ack\tcommit\ta 200\tGETs failed\trecovered after\t")
	row := func(name string, o *Outage, recovered string, notes ...string) {
		failed := 0
		for _, err := range slices.Sorted(maps.Keys(o.Failed)) {
			failed += o.Failed[err]
			notes = append(notes, fmt.Sprintf("%d × %s", o.Failed[err], err))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", name, harness.Seconds(o.Receiver),
			harness.Seconds(o.Stream), harness.Seconds(o.Commits), harness.Seconds(o.API), failed, recovered,
			strings.Join(notes, ", "))
	}
	row("no fault", &r.NoFault, "")
	for i := range r.Outages {
		o := &r.Outages[i]
		notes := append([]string{o.Member}, o.Notes...)
		if o.FirstCommit > 0 {
			notes = append(notes, "first commit "+harness.Seconds(o.FirstCommit)+" after the promotion")
		}
		row(o.Fault, o, harness.Seconds(o.Recovered.Sub(o.Began)), notes...)
	}
	_ = table.Flush() // Writing to a string cannot fail.
	return text.String()
}
