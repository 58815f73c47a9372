package upgrade

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
	"roomsensor/test/harness"
)

const (
	// readKeys share the calls: a key may send 600 requests in ten minutes (decision 25).
	readKeys = 100
	// readTimeout is for one call, all pages included.
	readTimeout = 30 * time.Second
	// pageSize is small, so that the pages of one list come from different versions.
	pageSize = 3
	readDays = 30
)

// reader calls the API as clients do, without retries: every error is a failed request.
type reader struct {
	env     *env
	clients []*client.Client
	devices []uuid.UUID // of the first team

	mu    sync.Mutex
	calls map[string]int // that succeeded, by name
}

func newReader(e *env) (*reader, error) {
	r := &reader{env: e, calls: map[string]int{}}
	for _, key := range e.readKeys {
		c, err := harness.NewClient(e.service.API, key, client.WithMaxAttempts(1))
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, c)
	}
	devices := map[uuid.UUID]bool{}
	for _, u := range e.fleet.Units {
		if u.Team == 0 {
			devices[u.Device] = true
		}
	}
	r.devices = slices.Collect(maps.Keys(devices))
	return r, nil
}

// operation is a call of the API, with its number.
type operation struct {
	name string
	call func(r *reader, ctx context.Context, c *client.Client, n int) error
}

// operations returns the calls. Lists of several pages, and changes that are sent twice, reach processes of both
// versions.
func operations() []operation {
	return []operation{
		{"team", (*reader).team},
		{"devices", (*reader).list},
		{"current", (*reader).current},
		{"readings", (*reader).readings},
		{"change", (*reader).change},
		{"csv", (*reader).export},
		{"aggregates", (*reader).aggregates},
		{"coverage", (*reader).coverage},
	}
}

// run calls the API at a constant rate until ctx ends, and returns once every call has ended.
func (r *reader) run(ctx context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(r.env.options.Reads))
	defer ticker.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	list := operations()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		group.Go(func() { r.call(context.WithoutCancel(ctx), list[n%len(list)], n) })
	}
}

func (r *reader) call(ctx context.Context, o operation, n int) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := o.call(r, ctx, r.clients[n%len(r.clients)], n); err != nil {
		r.env.Unexpected("the call %s failed: %v", o.name, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[o.name]++
}

func (r *reader) device(n int) uuid.UUID { return r.devices[n%len(r.devices)] }

func (r *reader) team(ctx context.Context, c *client.Client, _ int) error {
	answer, err := c.Team(ctx)
	if err == nil && answer.Team.ID != r.env.fleet.Teams[0].ID {
		err = fmt.Errorf("the team is %s", answer.Team.ID)
	}
	return err
}

func (r *reader) list(ctx context.Context, c *client.Client, _ int) error {
	return expect(c.Devices(ctx, client.DeviceQuery{PageSize: pageSize}), len(r.devices))
}

func (r *reader) current(ctx context.Context, c *client.Client, _ int) error {
	return expect(c.CurrentDevices(ctx, client.DeviceQuery{PageSize: pageSize}), len(r.devices))
}

func (r *reader) coverage(ctx context.Context, c *client.Client, _ int) error {
	return expect(c.Coverage(ctx, client.CoverageQuery{}), len(r.devices))
}

// expect reads a list, which must have n items.
func expect[T any](list iter.Seq2[T, error], n int) error {
	items := 0
	for _, err := range list {
		if err != nil {
			return err
		}
		items++
	}
	if items != n {
		return fmt.Errorf("the list has %d items instead of %d", items, n)
	}
	return nil
}

// readings reads some pages, and checks that they continue where the page before ended.
func (r *reader) readings(ctx context.Context, c *client.Client, n int) error {
	const pages = 4
	query := client.ReadingQuery{Window: client.Last(readDays * 24 * time.Hour), PageSize: pageSize}
	var before time.Time
	items := 0
	for reading, err := range c.Readings(ctx, r.device(n), query) {
		if err != nil {
			return err
		}
		if items > 0 && !reading.BucketAt.Before(before) {
			return fmt.Errorf("the reading of %s follows that of %s", reading.BucketAt, before)
		}
		before = reading.BucketAt
		if items++; items == pages*pageSize {
			break
		}
	}
	return nil
}

// change sends a change twice with one key. Both answers must be the same, whichever version sends them.
func (r *reader) change(ctx context.Context, c *client.Client, n int) error {
	value := strconv.Itoa(n)
	change := client.DeviceChange{
		Metadata: map[string]*string{"trial": &value}, IdempotencyKey: "upgrade-" + value,
	}
	first, err := c.UpdateDevice(ctx, r.device(n), change)
	if err != nil {
		return err
	}
	again, err := c.UpdateDevice(ctx, r.device(n), change)
	if err != nil {
		return err
	}
	if first.Metadata["trial"] != value || !maps.Equal(first.Metadata, again.Metadata) {
		return fmt.Errorf("the change %s was answered with %v and %v", value, first.Metadata, again.Metadata)
	}
	return nil
}

func (r *reader) export(ctx context.Context, c *client.Client, _ int) error {
	export, err := c.ExportCSV(ctx, client.ExportQuery{Window: client.Last(readDays * 24 * time.Hour)})
	if err != nil {
		return err
	}
	defer func() { _ = export.Close() }()
	_, err = io.Copy(io.Discard, export)
	return err //nolint:wrapcheck // Of the client.
}

func (r *reader) aggregates(ctx context.Context, c *client.Client, n int) error {
	query := client.AggregateQuery{
		Interval: client.Daily, Window: client.Last(readDays * 24 * time.Hour), PageSize: pageSize,
	}
	for _, err := range c.Aggregates(ctx, r.device(n), query) {
		if err != nil {
			return err
		}
	}
	return nil
}
