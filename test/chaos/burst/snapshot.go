package burst

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/retry"
	"roomsensor/test/harness"
)

// reader is a client of /devices/current that uses its keys in turn. It is not safe for concurrent use.
type reader struct {
	client *http.Client
	url    string
	keys   []string
	reads  int
}

func newReader(address string, keys []string) *reader {
	return &reader{
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}},
		url:    "http://" + address + "/v1/devices/current?", keys: keys,
	}
}

func (r *reader) close() { r.client.CloseIdleConnections() }

// state is a device in /devices/current.
type state struct {
	DeviceID uuid.UUID `json:"device_id"`
	Latest   struct {
		BucketAt time.Time `json:"bucket_at"`
		CO2      float64   `json:"co2_ppm"`
	} `json:"latest"`
}

// read returns all devices that match a filter, from all pages.
func (r *reader) read(ctx context.Context, filter string) (states []state, err error) {
	for query := filter; ; {
		var page struct {
			Data       []state `json:"data"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := r.get(ctx, query, &page); err != nil {
			return nil, fmt.Errorf("reading /devices/current: %w", err)
		}
		states = append(states, page.Data...)
		if page.NextCursor == nil {
			r.reads++
			return states, nil
		}
		query = filter + "&cursor=" + *page.NextCursor
	}
}

func (r *reader) get(ctx context.Context, query string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+query, nil)
	if err != nil {
		return err //nolint:wrapcheck // Wrapped by read.
	}
	request.Header.Set("Authorization", "Bearer "+r.keys[r.reads%len(r.keys)])
	response, err := r.client.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // Wrapped by read.
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into) //nolint:wrapcheck // Wrapped by read.
}

// snapshotChecker compares /devices/current with the table during the burst.
type snapshotChecker struct {
	service *harness.Service
	reader  *reader
	checks  int
	wrong   int // devices with a wrong latest reading
}

// maxAge is the maximum age of /devices/current (decision 43).
const maxAge = time.Second

// run checks repeatedly until stop is closed, and twice after that.
func (c *snapshotChecker) run(ctx context.Context, stop <-chan struct{}) error {
	return c.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for stopped := false; !stopped; {
			if err := c.check(ctx, conn); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("checking /devices/current: %w", ctx.Err())
			case <-stop:
				stopped = true
			case <-time.After(maxAge):
			}
		}
		return c.check(ctx, conn)
	})
}

// check compares the latest reading of every device in a snapshot with the newest readings in the table a second before
// the request and after the answer. It must not be older than the former nor newer than the latter.
func (c *snapshotChecker) check(ctx context.Context, conn *pgx.Conn) error {
	before, err := newestBuckets(ctx, conn)
	if err != nil {
		return err
	}
	if err := retry.Sleep(ctx, maxAge); err != nil {
		return fmt.Errorf("checking /devices/current: %w", err)
	}
	states, err := c.reader.read(ctx, "")
	if err != nil {
		return err
	}
	after, err := newestBuckets(ctx, conn)
	if err != nil {
		return err
	}
	c.checks++
	if len(states) != len(after) {
		c.wrong++
	}
	for i := range states {
		bucket := states[i].Latest.BucketAt
		if bucket.Before(before[states[i].DeviceID]) || bucket.After(after[states[i].DeviceID]) {
			c.wrong++
		}
	}
	return nil
}

// newestBuckets returns the bucket of the newest reading of every device, or the zero time if it has none.
func newestBuckets(ctx context.Context, conn *pgx.Conn) (map[uuid.UUID]time.Time, error) {
	// ForEachRow returns the error of Query.
	rows, _ := conn.Query(ctx, `
		SELECT d.id, coalesce(r.bucket_at, '0001-01-01T00:00:00Z') FROM devices d
		LEFT JOIN LATERAL (SELECT bucket_at FROM readings WHERE device_id = d.id ORDER BY bucket_at DESC LIMIT 1) r ON true`)
	newest := map[uuid.UUID]time.Time{}
	var id uuid.UUID
	var bucket time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &bucket}, func() error {
		newest[id] = bucket
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the newest buckets: %w", err)
	}
	return newest, nil
}
