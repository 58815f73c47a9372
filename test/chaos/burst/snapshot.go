package burst

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/test/harness"
)

// reader is a client of /devices/current that uses its keys in turn. It is not safe for concurrent use.
type reader struct {
	http    *http.Client
	clients []*client.Client // of its keys
	reads   int
}

func newReader(address string, keys []string) (*reader, error) {
	r := &reader{http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}}
	for _, key := range keys {
		c, err := client.New("http://"+address, key, client.WithHTTPClient(r.http), client.WithMaxAttempts(1))
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, c)
	}
	return r, nil
}

func (r *reader) close() { r.http.CloseIdleConnections() }

// read returns all devices that have all tags, from all pages.
func (r *reader) read(ctx context.Context, tags map[string]string) (devices []client.CurrentDevice, err error) {
	c := r.clients[r.reads%len(r.clients)]
	for device, err := range c.CurrentDevices(ctx, client.DeviceQuery{Metadata: tags}) {
		if err != nil {
			return nil, fmt.Errorf("reading /devices/current: %w", err)
		}
		devices = append(devices, device)
	}
	r.reads++
	return devices, nil
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
	devices, err := c.reader.read(ctx, nil)
	if err != nil {
		return err
	}
	after, err := newestBuckets(ctx, conn)
	if err != nil {
		return err
	}
	c.checks++
	if len(devices) != len(after) {
		c.wrong++
	}
	for _, device := range devices {
		var bucket time.Time
		if device.Latest != nil {
			bucket = device.Latest.BucketAt
		}
		if bucket.Before(before[device.DeviceID]) || bucket.After(after[device.DeviceID]) {
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
