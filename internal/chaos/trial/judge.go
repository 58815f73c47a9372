package trial

import (
	"context"
	"time"

	"roomsensor/internal/chaos/ledger"
)

// Judge holds what is found against the ledger.
type Judge struct {
	Service *Service
	Fleet   *Fleet
	Ledger  *ledger.Ledger

	Verdict  ledger.Verdict
	Rows     int           // readings in the tables
	Rejects  int           // in the tables
	Replayed time.Duration // for the whole stream once more
}

// Judge compares, gives the stream to the workers again, and compares once more.
func (j *Judge) Judge(ctx context.Context) error {
	if err := j.Service.scan(ctx, j.Ledger); err != nil {
		return err
	}
	before, err := j.compare(ctx, "the tables")
	if err != nil {
		return err
	}
	rows, err := j.Service.exported(ctx, j.Fleet)
	if err != nil {
		return err
	}
	_, csv := j.Ledger.Compare(rows)
	j.confirm("the CSV exports", csv)

	if err := j.replay(ctx); err != nil {
		return err
	}
	after, err := j.compare(ctx, "the tables after the replay")
	if err == nil {
		j.confirm("what the replay changed", before.Unchanged(after))
	}
	return err
}

// replay gives the whole stream to the workers again, as an operator does after a restore.
func (j *Judge) replay(ctx context.Context) error {
	j.Service.Say("replaying the stream")
	began := time.Now()
	if err := j.Service.Command(ctx, nil, "stream", "replay"); err != nil {
		return err
	}
	if err := j.Service.Narrow(ctx); err != nil {
		return err
	}
	_, err := j.Service.Settle(ctx)
	j.Replayed = time.Since(began)
	return err
}

// compare holds the tables against the ledger.
func (j *Judge) compare(ctx context.Context, where string) (ledger.Found, error) {
	f, err := j.Service.find(ctx, j.Fleet)
	if err != nil {
		return nil, err
	}
	j.Rows, j.Rejects = len(f.readings), len(f.rejects)
	rows, verdict := j.Ledger.Compare(f.readings)
	verdict.Add(j.Ledger.Rejects(f.rejects))
	verdict.Add(j.Ledger.States(f.states))
	j.confirm(where, verdict)
	j.confirm("the hours of "+where, rows.Hours(f.hours))
	return rows, nil
}

func (j *Judge) confirm(where string, v ledger.Verdict) {
	j.Service.Say("%s: %s", where, v.String())
	j.Verdict.Confirm(v)
}
