package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
	"roomsensor/test/ledger"
)

// reads are clients that read while the standby fails. No request may fail, and each answer must have the readings that
// were in the tables of the primary before the request (decision 43).
type reads struct {
	keys  []string // of the first team; the last one follows the change feed
	teams map[uuid.UUID]int

	// The change feed. Only one fault at a time uses it.
	since    time.Time
	position client.Position // empty before the first page
	changed  map[ledger.Key]bool

	mu        sync.Mutex
	committed []seen // readings of the first team, in the order in which they were found
	rows      map[ledger.Key]bool
}

// seen is a reading that was in the table at a time.
type seen struct {
	ledger.Key

	at time.Time
}

const (
	// readKeys share the requests, see probeKeys.
	readKeys = 32
	// readPause is the time between two requests of a client for pages or aggregates, and longPause that of the others.
	readPause, longPause = 200 * time.Millisecond, time.Second
	// readTimeout is more than the service gives an export to begin.
	readTimeout = 90 * time.Second
	// feedTimeout bounds the time until a committed change appears while transactions of writers are open, which last up
	// to 45 s (A5.4). Without any, it appears within feedQuietTimeout on a busy machine.
	feedTimeout, feedQuietTimeout = time.Minute, 30 * time.Second
	// mostFindings is how many failed reads of a kind are reported for a fault.
	mostFindings = 3
)

func (e *env) newReads(ctx context.Context) (*reads, error) {
	r := &reads{
		teams: map[uuid.UUID]int{}, rows: map[ledger.Key]bool{}, changed: map[ledger.Key]bool{}, since: time.Now(),
	}
	for _, u := range e.fleet.Units {
		r.teams[u.Device] = u.Team
	}
	return r, e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		r.keys, err = harness.InsertAPIKeys(ctx, conn, e.fleet.Teams[0].ID, readKeys)
		return err
	})
}

// add records readings that a query has found in the table of the primary.
func (r *reads) add(found []ledger.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range found {
		if r.teams[key.Device] == 0 && !r.rows[key] {
			r.rows[key] = true
			r.committed = append(r.committed, seen{key, time.Now()})
		}
	}
}

// known returns the readings that were found so far. The caller must not change them.
func (r *reads) known() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.committed)
}

// reading is the reads during one fault.
type reading struct {
	*env
	*reads

	fault string

	mu      sync.Mutex
	count   map[string]int
	longest map[string]time.Duration
	failed  map[string]int
}

var errStale = errors.New("the answer lacks readings that were committed before the request")

// start starts the clients. stop ends them and describes what they did.
func (r *reads) start(ctx context.Context, e *env, fault string) (stop func() string) {
	now := &reading{
		env: e, reads: r, fault: fault,
		count: map[string]int{}, longest: map[string]time.Duration{}, failed: map[string]int{},
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for i, kind := range []struct {
		name  string
		pause time.Duration
		read  func(context.Context, *client.Client) error
	}{
		{"pages", readPause, now.readPage},
		{"aggregates", readPause, now.readAggregates},
		{"exports", longPause, now.readExport},
		{"exports of 240,000 rows", longPause, func(ctx context.Context, _ *client.Client) error {
			return e.archive.check(ctx, e.service.API)
		}},
	} {
		group.Go(func() {
			for n := i; retry.Sleep(ctx, kind.pause) == nil; n++ {
				now.measure(ctx, kind.name, func(ctx context.Context) error {
					c, err := harness.NewClient(e.service.API, r.keys[n%(readKeys-1)], client.WithMaxAttempts(1))
					if err != nil {
						return err
					}
					return kind.read(ctx, c)
				})
			}
		})
	}
	quit := make(chan struct{})
	var feed sync.WaitGroup
	feed.Go(func() { now.follow(context.WithoutCancel(ctx), quit) })
	return sync.OnceValue(func() string {
		cancel()
		close(quit)
		group.Wait()
		feed.Wait()
		return now.String()
	})
}

// measure counts a request, and reports its failure.
func (r *reading) measure(ctx context.Context, kind string, read func(context.Context) error) {
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	err := read(bounded)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[kind]++
	r.longest[kind] = max(r.longest[kind], time.Since(began))
	if err == nil {
		return
	}
	if r.failed[kind]++; r.failed[kind] <= mostFindings {
		r.Unexpected("%s: %s: %v after %.1f s", r.fault, kind, err, time.Since(began).Seconds())
	}
}

// String returns the number of requests and the longest one of each kind.
func (r *reading) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(r.count)) {
		part := fmt.Sprintf("%d %s in at most %.1f s", r.count[kind], kind, r.longest[kind].Seconds())
		if r.failed[kind] > 0 {
			part += fmt.Sprintf(" (%d FAILED)", r.failed[kind])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// readPage reads the hour of the reading that was stored last.
func (r *reading) readPage(ctx context.Context, c *client.Client) error {
	known := r.known()
	device, hour, want := lastHour(known)
	if len(want) == 0 {
		return nil
	}
	found := map[ledger.Key]bool{}
	query := client.ReadingQuery{Window: hour}
	for reading, err := range c.Readings(ctx, device, query) {
		if err != nil {
			return err
		}
		found[ledger.KeyOf(device, reading.BucketAt)] = true
	}
	return checkRows(want, found)
}

// readAggregates reads the aggregates of the hour of the reading that was stored last.
func (r *reading) readAggregates(ctx context.Context, c *client.Client) error {
	device, hour, want := lastHour(r.known())
	if len(want) == 0 {
		return nil
	}
	present := 0
	query := client.AggregateQuery{Window: hour, Interval: client.Hourly}
	for aggregate, err := range c.Aggregates(ctx, device, query) {
		if err != nil {
			return err
		}
		present += aggregate.Present
	}
	if present < len(want) {
		return fmt.Errorf("%w: %d of %d", errStale, len(want)-present, len(want))
	}
	return nil
}

// readExport exports all readings of the team.
func (r *reading) readExport(ctx context.Context, c *client.Client) error {
	want := r.known()
	window := client.Between(r.fleet.Now.Add(-ledger.Oldest-roomsensor.BucketLength), r.fleet.Now)
	found := map[ledger.Key]bool{}
	for reading, err := range c.ExportReadings(ctx, client.ExportQuery{Window: window}) {
		if err != nil {
			return err
		}
		found[ledger.KeyOf(reading.DeviceID, reading.BucketAt)] = true
	}
	return checkRows(want, found)
}

// lastHour returns the device and the hour of the last of some readings, and those of them in it.
func lastHour(known []seen) (device uuid.UUID, hour client.Window, want []seen) {
	if len(known) == 0 {
		return device, hour, nil
	}
	last := known[len(known)-1]
	from := time.Unix(last.Bucket, 0).UTC().Truncate(time.Hour)
	hour = client.Between(from, from.Add(time.Hour))
	if now := time.Now().UTC(); now.Before(hour.To) {
		hour.To = now
	}
	for _, row := range known {
		if at := time.Unix(row.Bucket, 0); row.Device == last.Device && !at.Before(hour.From) && at.Before(hour.To) {
			want = append(want, row)
		}
	}
	return last.Device, hour, want
}

func checkRows(want []seen, found map[ledger.Key]bool) error {
	missing := 0
	for _, row := range want {
		if !found[row.Key] {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d of %d", errStale, missing, len(want))
	}
	return nil
}

// follow follows the change feed until quit is closed, and then until it has everything that was committed before.
func (r *reading) follow(ctx context.Context, quit <-chan struct{}) {
	const kind = "pages of changes"
	var end []seen // what the feed must have before the end
	var ends time.Time
	for retry.Sleep(ctx, longPause) == nil {
		known, asked := r.known(), time.Now()
		r.measure(ctx, kind, func(ctx context.Context) error {
			if err := r.readChanges(ctx); err != nil {
				return err
			}
			return checkRows(slices.DeleteFunc(slices.Clone(known), func(row seen) bool {
				return asked.Sub(row.at) < feedTimeout
			}), r.changed)
		})
		select {
		case <-quit:
			if end == nil {
				end, ends = known, time.Now().Add(feedQuietTimeout)
			}
			err := checkRows(end, r.changed)
			if err != nil && time.Now().After(ends) {
				r.Unexpected("%s: %s: %v", r.fault, kind, err)
			}
			if err == nil || time.Now().After(ends) {
				return
			}
		default:
		}
	}
}

// readChanges reads the changes after the position until there are no more. Its error is that of a request that failed,
// which the client would send again.
func (r *reading) readChanges(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := harness.NewClient(r.service.API, r.keys[readKeys-1],
		client.WithRetryHook(func(failed client.Retry) { cancel(failed.Err) }))
	if err != nil {
		return err
	}
	query := client.ChangeQuery{Since: r.since, UntilCaughtUp: true}
	for page, err := range c.Follow(ctx, query, r.position) {
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		for i := range page.Readings {
			r.changed[ledger.KeyOf(page.Readings[i].DeviceID, page.Readings[i].BucketAt)] = true
		}
		r.position = page.Position
	}
	return nil
}
