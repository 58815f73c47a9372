package backup_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // Reads the copy of a client.

	"roomsensor/internal/admin/doctor"
	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// drill is a trial whose units send while the steps of the drill run.
type drill struct {
	*env
	*harness.Trial
	enough   chan struct{} // closed to send no more
	sent     chan struct{} // closed when every upload that was sent has its final outcome
	received atomic.Int64  // requests that the receiver confirmed
}

const (
	// drillReadings are sent in drillSpan, unless the steps of the drill are over before. So every step happens while units
	// send, also on a busy machine.
	drillReadings = 120_000
	drillSpan     = 10 * time.Minute
	// stepReadings are stored between two steps.
	stepReadings = 300
)

// begin starts to send.
func (e *env) begin(seed uint64) *drill {
	e.t.Helper()
	requests, err := ledger.Make(ledger.Options{
		Seed: seed, Readings: drillReadings, Span: drillSpan, Now: e.fleet.Now, Teams: len(e.fleet.Teams), Units: e.fleet.Units,
	})
	require.NoError(e.t, err)
	d := &drill{
		env: e, Trial: harness.NewTrial(e.service, e.fleet, requests),
		enough: make(chan struct{}), sent: make(chan struct{}),
	}
	d.Stop = d.enough
	d.Confirmed = func(r *ledger.Request, _ time.Time) {
		if r.Path != ledger.Stream {
			d.received.Add(1)
		}
	}
	ctx, cancel := context.WithCancel(e.t.Context())
	e.OnClose(func(context.Context) error { cancel(); <-d.sent; return nil })
	go func() {
		defer close(d.sent)
		d.Send(ctx, requests)
	}()
	e.awaitMore()
	return d
}

// finish sends no more, waits until everything is stored, and compares it with the ledger.
func (d *drill) finish() {
	d.t.Helper()
	d.awaitMore()
	close(d.enough)
	<-d.sent
	d.stop("receiver")
	ctx := d.t.Context()
	require.NoError(d.t, d.Settle(ctx))
	d.refreshHours()
	require.NoError(d.t, d.Verify(ctx))
	report := d.Result("")
	require.NoError(d.t, report.Failure())
	d.Logf("%d uploads confirmed, %d readings stored", report.Uploads.OK, report.Rows)
	d.Logf("%s", report.Verdict.String())
}

// afterRestore runs the steps that every restore ends with. The replay must have something to do: what was stored after
// the moment is missing.
func (d *drill) afterRestore(before int, repeatChanges func()) {
	d.t.Helper()
	restored := d.readings()
	d.Logf("restored %d readings of %d", restored, before)
	require.Positive(d.t, restored)
	require.Less(d.t, restored, before)
	d.step(nil, "end sessions", endSessions)
	repeatChanges()
	d.check()
	d.startAPIAndWorker()
	d.step(nil, "replay the stream", replayStream)
}

// check runs the check of a restored database.
func (e *env) check() {
	e.t.Helper()
	var diagnosis doctor.Diagnosis
	require.NoError(e.t, json.Unmarshal([]byte(e.step(nil, "check", checkState)), &diagnosis))
	checked := map[string]doctor.Finding{}
	for _, f := range diagnosis.Data {
		checked[f.Check] = f
	}
	for _, check := range []string{
		"database migrations", "database owner", "database roles", "restored moment", "sessions", "replay", "queue stream",
	} {
		require.Equal(e.t, doctor.OK, checked[check].Status, checked[check].Message)
	}
	e.Logf("%s", checked["replay"].Message)
}

// oldCopy is a copy of the readings of a team, as a client keeps it.
type oldCopy struct {
	*env
	path string
	key  string
}

// sync runs roomsensor sync until the copy has caught up, and returns what it printed if it failed.
func (c *oldCopy) sync() (stderr string, ok bool) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.programs.Roomsensor, "sync", c.path, "--once")
	cmd.Env = []string{"ROOMSENSOR_URL=http://" + c.service.API, "ROOMSENSOR_API_KEY=" + c.key}
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	return out.String(), err == nil
}

// all returns all readings in the copy as a text.
func (c *oldCopy) all() (text string) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.path)
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, db.Close()) }()
	require.NoError(c.t, db.QueryRowContext(c.t.Context(),
		`SELECT group_concat(device_id || bucket_at || coalesce(co2_ppm, '') || ingested_at, char(10) ORDER BY device_id, bucket_at)
		FROM readings`).Scan(&text))
	return text
}

// rows returns the number of readings of a device in the copy.
func (c *oldCopy) rows(device uuid.UUID) (n int) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.path)
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, db.Close()) }()
	require.NoError(c.t, db.QueryRowContext(c.t.Context(),
		"SELECT count(*) FROM readings WHERE device_id = ?", device.String()).Scan(&n))
	return n
}
