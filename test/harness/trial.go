package harness

import (
	"context"
	"time"

	"roomsensor/test/ledger"
)

// Trial sends the uploads of a ledger while faults happen, and verifies what is stored. Call Send, Settle and Verify in
// this order.
type Trial struct {
	Service *Service
	Fleet   *Fleet
	Ledger  *ledger.Ledger
	Watcher *Watcher
	Started time.Time // of Send

	verdict       ledger.Verdict
	rows, rejects int
	sent          time.Duration // until the last request had its final outcome
	settled       time.Duration // from then until the workers were done
	replayed      time.Duration // to process the whole stream again
	deliveries    uint64
}

// NewTrial returns a trial of a service and a fleet.
func NewTrial(s *Service, f *Fleet, requests []*ledger.Request) *Trial {
	return &Trial{Service: s, Fleet: f, Ledger: ledger.New(requests), Watcher: NewWatcher(s)}
}

// Send sends all requests and returns once each has its final outcome. See Sender for noMoreFaults and stop; confirmed
// may be nil.
func (t *Trial) Send(
	ctx context.Context, requests []*ledger.Request, noMoreFaults, stop <-chan struct{},
	confirmed func(*ledger.Request, time.Time),
) {
	t.Started = time.Now()
	s := &Sender{
		Service: t.Service, Fleet: t.Fleet, Ledger: t.Ledger, NoMoreFaults: noMoreFaults, Stop: stop,
		Confirmed: func(r *ledger.Request, at time.Time) {
			t.Watcher.Add(r.Uploads, at)
			if confirmed != nil {
				confirmed(r, at)
			}
		},
	}
	s.SendAll(ctx, requests)
	t.sent = time.Since(t.Started)
	t.Service.Logf("all requests are sent")
}

// Settle waits until the workers have acknowledged every message. The receivers must have ended, so that no message can
// follow.
func (t *Trial) Settle(ctx context.Context) (err error) {
	began := time.Now()
	if err := t.Service.ShortenAckWait(ctx); err != nil {
		return err
	}
	t.deliveries, err = t.Service.AwaitSettled(ctx)
	t.settled = time.Since(began)
	return err
}

// Verify compares the tables and the exports with the ledger, replays the whole stream, and compares the tables again.
func (t *Trial) Verify(ctx context.Context) error {
	if err := t.Service.readStream(ctx, t.Ledger); err != nil {
		return err
	}
	before, err := t.verifyTables(ctx, "tables")
	if err != nil {
		return err
	}
	rows, err := t.Service.readExports(ctx, t.Fleet)
	if err != nil {
		return err
	}
	_, exports := t.Ledger.Compare(rows)
	t.add("CSV exports", exports)
	if err := t.replay(ctx); err != nil {
		return err
	}
	after, err := t.verifyTables(ctx, "tables after the replay")
	if err == nil {
		t.add("changes by the replay", before.Unchanged(after))
	}
	return err
}

// replay has the workers process the whole stream again, as an operator does after a restore.
func (t *Trial) replay(ctx context.Context) error {
	t.Service.Logf("replaying the stream")
	began := time.Now()
	if err := t.Service.Command(ctx, nil, "stream", "replay"); err != nil {
		return err
	}
	if err := t.Service.ShortenAckWait(ctx); err != nil {
		return err
	}
	_, err := t.Service.AwaitSettled(ctx)
	t.replayed = time.Since(began)
	return err
}

func (t *Trial) verifyTables(ctx context.Context, where string) (ledger.Found, error) {
	tables, err := t.Service.ReadTables(ctx, t.Fleet.Excluded)
	if err != nil {
		return nil, err
	}
	t.rows, t.rejects = len(tables.Readings), len(tables.Rejects)
	found, verdict := t.Ledger.Compare(tables.Readings)
	verdict.Add(t.Ledger.Rejects(tables.Rejects))
	verdict.Add(t.Ledger.States(tables.States))
	t.add(where, verdict)
	t.add("hourly aggregates of "+where, found.Hours(tables.Hours))
	return found, nil
}

// add takes the maximum of each count: every comparison is of the same readings.
func (t *Trial) add(where string, v ledger.Verdict) {
	t.Service.Logf("%s: %s", where, v.String())
	t.verdict.Confirm(v)
}

// Report returns the results so far. The database is described in its own words.
func (t *Trial) Report(database string) Report {
	tally := t.Ledger.Tally()
	return Report{
		Verdict: t.verdict, Findings: t.Service.Findings(), Started: t.Started.UTC().Truncate(time.Second),
		Hardware: ThisMachine(database), Uploads: tally, Rows: t.rows, Rejects: t.rejects, Visible: t.Watcher.Visible(),
		Redeliveries: int64(t.deliveries) - int64(tally.Messages), //nolint:gosec // Both are counts of messages.
		Sent:         t.sent, Settled: t.settled, Replayed: t.replayed,
	}
}
