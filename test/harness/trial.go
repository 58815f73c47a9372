package harness

import (
	"context"
	"sync"
	"time"

	"roomsensor/test/ledger"
)

// Trial sends the uploads of a ledger while faults happen, and verifies what is stored. Call Follow, Send, Settle,
// Verify and Result in this order; Follow may be omitted.
type Trial struct {
	*Service

	Fleet   *Fleet
	Ledger  *ledger.Ledger
	Watcher *Watcher
	// Confirmed is called with each request that was confirmed. It may be nil.
	Confirmed func(*ledger.Request, time.Time)
	// NoMoreFaults is closed after the last fault. The last requests are held back until then, so that every fault
	// happens under load. If it is nil, none is held back.
	NoMoreFaults <-chan struct{}
	// Stop ends sending when it is closed: requests that are not due yet are never sent. It may be nil.
	Stop <-chan struct{}

	receiver  *Receiver
	followers []*follower // one per team, after Follow
	report    Report
}

// NewTrial returns a trial of a service and a fleet.
func NewTrial(s *Service, f *Fleet, requests []*ledger.Request) *Trial {
	return &Trial{Service: s, Fleet: f, Ledger: ledger.New(requests), Watcher: NewWatcher(s)}
}

// Follow starts a client of the change feed for each team, whose copy Verify compares with the ledger.
func (t *Trial) Follow(ctx context.Context) error {
	for _, team := range t.Fleet.Teams {
		f, err := t.follow(ctx, team)
		if err != nil {
			return err
		}
		t.followers = append(t.followers, f)
	}
	return nil
}

// Send sends all requests and returns once each has its final outcome.
func (t *Trial) Send(ctx context.Context, requests []*ledger.Request) {
	began := time.Now()
	t.report.Started = began.UTC().Truncate(time.Second)
	t.receiver = NewReceiver(t.Receiver, senders)
	defer t.receiver.Close()
	due := make(chan *ledger.Request)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for r := range due {
				t.deliver(ctx, r)
			}
		})
	}
	t.schedule(ctx, requests, due)
	close(due)
	group.Wait()
	t.report.Sent = time.Since(began)
	t.Logf("all requests are sent")
}

// Settle waits until the workers have acknowledged every message. The receivers must have ended, so that no message can
// follow.
func (t *Trial) Settle(ctx context.Context) error {
	began := time.Now()
	if err := t.ShortenAckWait(ctx); err != nil {
		return err
	}
	deliveries, err := t.AwaitSettled(ctx)
	t.report.Settled, t.report.Redeliveries = time.Since(began), deliveries
	return err
}

// Verify compares the tables and the exports with the ledger, replays the whole stream, and compares the tables again.
func (t *Trial) Verify(ctx context.Context) error {
	if err := t.readStream(ctx, t.Ledger); err != nil {
		return err
	}
	before, err := t.verifyTables(ctx, "tables")
	if err != nil {
		return err
	}
	rows, err := t.readExports(ctx, t.Fleet)
	if err != nil {
		return err
	}
	_, exports := t.Ledger.Compare(rows)
	t.add("CSV exports", exports)
	if err := t.verifyFeed(ctx, before); err != nil {
		return err
	}
	if err := t.replay(ctx); err != nil {
		return err
	}
	after, err := t.verifyTables(ctx, "tables after the replay")
	if err != nil {
		return err
	}
	t.add("changes by the replay", before.Unchanged(after))
	return t.verifyUnchanged(ctx)
}

// verifyFeed compares the copies of the followers with the ledger and, with the times of the writes, with the tables.
func (t *Trial) verifyFeed(ctx context.Context, tables ledger.Found) error {
	if len(t.followers) == 0 {
		return nil
	}
	var rows []ledger.Row
	for _, f := range t.followers {
		if err := f.end(ctx); err != nil {
			return err
		}
		t.report.Followed += f.items
		for key := range f.copy {
			row := f.copy[key]
			if stored, ok := tables[key]; ok && !stored.IngestedAt.Equal(row.IngestedAt) {
				t.Unexpected("the change feed has an older state of the %v", &row)
			}
			row.IngestedAt = time.Time{}
			rows = append(rows, row)
		}
	}
	_, feed := t.Ledger.Compare(rows)
	t.add("change feed", feed)
	return nil
}

// verifyUnchanged checks that the change feed has nothing new after the replay.
func (t *Trial) verifyUnchanged(ctx context.Context) error {
	for _, f := range t.followers {
		before := f.items
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if f.items > before {
			t.Unexpected("the change feed has %d changes by the replay", f.items-before)
		}
	}
	return nil
}

// replay has the workers process the whole stream again, as an operator does after a restore.
func (t *Trial) replay(ctx context.Context) error {
	t.Logf("replaying the stream")
	began := time.Now()
	if err := t.Command(ctx, nil, "stream", "replay"); err != nil {
		return err
	}
	if err := t.ShortenAckWait(ctx); err != nil {
		return err
	}
	_, err := t.AwaitSettled(ctx)
	t.report.Replayed = time.Since(began)
	return err
}

func (t *Trial) verifyTables(ctx context.Context, where string) (ledger.Found, error) {
	tables, err := t.ReadTables(ctx, t.Fleet.Excluded)
	if err != nil {
		return nil, err
	}
	t.report.Rows, t.report.Rejects = len(tables.Readings), len(tables.Rejects)
	found, verdict := t.Ledger.Compare(tables.Readings)
	verdict.Add(t.Ledger.Rejects(tables.Rejects))
	verdict.Add(t.Ledger.States(tables.States))
	t.add(where, verdict)
	t.add("hourly aggregates of "+where, found.Hours(tables.Hours))
	return found, nil
}

// add takes the maximum of each count: every comparison is of the same readings.
func (t *Trial) add(where string, v ledger.Verdict) {
	t.Logf("%s: %s", where, v.String())
	t.report.Verdict.Confirm(v)
}

// Result returns the report. The database is described in its own words.
func (t *Trial) Result(database string) Report {
	r := t.report
	r.Findings, r.Hardware, r.Visible = t.Findings(), ThisMachine(database), t.Watcher.Visible()
	r.Uploads = t.Ledger.Tally()
	r.Redeliveries -= int64(r.Uploads.Messages) // So far it is the number of deliveries.
	return r
}
