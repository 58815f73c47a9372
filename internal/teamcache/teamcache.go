// Package teamcache keeps one value per team in memory, such as a snapshot of its devices. One read serves all requests
// of a team that need the value at the same time.
package teamcache

import (
	"context"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"roomsensor/internal/panics"
)

// Config is the configuration of a cache of values of type V. Values are shared and must not change.
type Config[V any] struct {
	// Read reads the value of a team. last is the value in memory, or nil.
	Read func(ctx context.Context, teamID uuid.UUID, last *V) (Entry[V], error)
	// Timeout limits one read, which many requests may wait for.
	Timeout time.Duration
	// MaxReads limits the number of values that are read at the same time.
	MaxReads int
	// MaxBytes is the limit of the memory of all values. The least recently used ones are evicted, and one that is
	// larger than a third of it is not kept.
	MaxBytes int
}

// Cache keeps the values of teams. It is safe for concurrent use.
type Cache[V any] struct {
	cfg     Config[V]
	values  *Values[V]
	flights singleflight.Group
	reading chan struct{} // full while MaxReads values are read
}

// New returns an empty cache.
func New[V any](cfg Config[V]) *Cache[V] {
	return &Cache[V]{cfg: cfg, values: NewValues[V](cfg.MaxBytes), reading: make(chan struct{}, cfg.MaxReads)}
}

// Get returns the value of a team in memory if it serves, and otherwise reads until one does. serves must accept a
// value whose read began after the call of Get.
func (c *Cache[V]) Get(ctx context.Context, teamID uuid.UUID, serves func(*V) bool) (*V, error) {
	if value := c.Kept(teamID); value != nil && serves(value) {
		return value, nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-c.Refresh(ctx, teamID):
			if result.Err != nil {
				return nil, result.Err
			}
			// A read that was already running may have begun too early.
			if value := result.Val.(*V); serves(value) { //nolint:forcetypeassert // As Refresh returns it.
				return value, nil
			}
		}
	}
}

// Kept returns the value of a team in memory, or nil.
func (c *Cache[V]) Kept(teamID uuid.UUID) *V { return c.values.Kept(teamID) }

// Refresh reads the value of a team, once for all requests that wait for it. The read does not end with the request
// that started it.
func (c *Cache[V]) Refresh(ctx context.Context, teamID uuid.UUID) <-chan singleflight.Result {
	return c.flights.DoChan(teamID.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
		defer cancel()
		select {
		case c.reading <- struct{}{}:
			defer func() { <-c.reading }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var entry Entry[V]
		err := panics.Recover(func() (err error) { // singleflight would end the process on a panic.
			entry, err = c.cfg.Read(ctx, teamID, c.Kept(teamID))
			return err
		})
		if err != nil {
			return nil, err
		}
		c.values.Keep(teamID, entry)
		return entry.Value, nil
	})
}
