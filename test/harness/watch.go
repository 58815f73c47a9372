package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/retry"
	"roomsensor/test/ledger"
)

const (
	// watchInterval is the precision of the time to visibility.
	watchInterval = 100 * time.Millisecond
	// watchOneIn limits the load of the queries: one upload in so many is watched.
	watchOneIn = 4
)

// Watcher measures the time from the confirmation of an upload until its readings are in the table.
type Watcher struct {
	service *Service

	mu      sync.Mutex
	waiting map[ledger.Key]time.Time // time of the confirmation
	took    []time.Duration
}

// NewWatcher returns a watcher of the database of a service.
func NewWatcher(s *Service) *Watcher {
	return &Watcher{service: s, waiting: map[ledger.Key]time.Time{}}
}

// Add adds confirmed uploads. An upload that was confirmed before keeps its first time.
func (w *Watcher) Add(uploads []*ledger.Upload, confirmed time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range uploads {
		if len(u.Readings) == 0 || u.ID%watchOneIn != 0 {
			continue
		}
		last := u.Readings[len(u.Readings)-1]
		key := ledger.KeyOf(u.Unit.Device, last.Bucket())
		if _, again := w.waiting[key]; !again {
			w.waiting[key] = confirmed
		}
	}
}

// Run queries the table until ctx ends. The time that the database is unavailable counts, as it does for clients.
func (w *Watcher) Run(ctx context.Context) {
	retry.Every(ctx, watchInterval, func(ctx context.Context) {
		// An error ends the connection, and the next call opens a new one.
		_ = w.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return retry.Until(ctx, watchInterval, func(ctx context.Context) (bool, error) {
				return false, w.query(ctx, conn)
			})
		})
	})
}

func (w *Watcher) query(ctx context.Context, conn *pgx.Conn) error {
	devices, buckets := w.keys()
	if len(devices) == 0 {
		return nil
	}
	rows, _ := conn.Query(ctx, `
		SELECT w.device_id, extract(epoch FROM w.bucket_at)::bigint
		FROM unnest($1::uuid[], $2::timestamptz[]) w (device_id, bucket_at)
		WHERE EXISTS (SELECT FROM readings r WHERE r.device_id = w.device_id AND r.bucket_at = w.bucket_at)`,
		devices, buckets) // CollectRows returns the error.
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Key])
	if err != nil {
		return fmt.Errorf("querying readings: %w", err)
	}
	w.markVisible(found, time.Now())
	return nil
}

func (w *Watcher) keys() (devices []uuid.UUID, buckets []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.waiting {
		devices = append(devices, key.Device)
		buckets = append(buckets, time.Unix(key.Bucket, 0))
	}
	return devices, buckets
}

func (w *Watcher) markVisible(keys []ledger.Key, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.took = append(w.took, now.Sub(w.waiting[key]))
		delete(w.waiting, key)
	}
}

// Visible is the distribution of the time from confirmation to visibility.
type Visible struct {
	Uploads int           `json:"uploads"` // watched ones
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Max     time.Duration `json:"max_ns"`
}

// Visible returns the distribution so far.
func (w *Watcher) Visible() (v Visible) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.took)
	if n == 0 {
		return v
	}
	slices.Sort(w.took)
	return Visible{n, w.took[n/2], w.took[n*99/100], w.took[n-1]}
}
