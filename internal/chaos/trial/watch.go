package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/chaos/ledger"
)

const (
	// watchEvery is how exactly the time to visible is known.
	watchEvery = 100 * time.Millisecond
	// watchOneOf keeps the questions from being a load: one of so many uploads is watched.
	watchOneOf = 4
)

// Watcher measures how long confirmed uploads take to be readable.
type Watcher struct {
	service *Service

	mu      sync.Mutex
	waiting map[ledger.Key]time.Time // when it was confirmed
	took    []time.Duration
}

// NewWatcher watches the database of a service.
func NewWatcher(s *Service) *Watcher {
	return &Watcher{service: s, waiting: map[ledger.Key]time.Time{}}
}

// Add notes uploads that were just confirmed. What is sent again may be there already, and is not measured twice.
func (w *Watcher) Add(uploads []*ledger.Upload, confirmed time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range uploads {
		if len(u.Readings) == 0 || u.ID%watchOneOf != 0 {
			continue
		}
		last := u.Readings[len(u.Readings)-1]
		key := ledger.KeyOf(u.Unit.Device, last.Bucket())
		if _, again := w.waiting[key]; !again {
			w.waiting[key] = confirmed
		}
	}
}

// Run looks until ctx ends. A database that is away makes everything wait, as it does for clients.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		// A connection that breaks is opened again.
		_ = w.service.Ask(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			for {
				if err := w.look(ctx, conn); err != nil {
					return err
				}
				if err := Pause(ctx, watchEvery); err != nil {
					return err
				}
			}
		})
		_ = Pause(ctx, watchEvery)
	}
}

func (w *Watcher) look(ctx context.Context, conn *pgx.Conn) error {
	devices, buckets := w.keys()
	if len(devices) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, `
		SELECT w.device_id, extract(epoch FROM w.bucket_at)::bigint
		FROM unnest($1::uuid[], $2::timestamptz[]) w (device_id, bucket_at)
		WHERE EXISTS (SELECT FROM readings r WHERE r.device_id = w.device_id AND r.bucket_at = w.bucket_at)`,
		devices, buckets)
	if err != nil {
		return fmt.Errorf("looking for readings: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Key])
	if err != nil {
		return fmt.Errorf("looking for readings: %w", err)
	}
	w.seen(there, time.Now())
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

func (w *Watcher) seen(keys []ledger.Key, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.took = append(w.took, now.Sub(w.waiting[key]))
		delete(w.waiting, key)
	}
}

// Visible says how long confirmed uploads took to be readable.
type Visible struct {
	Uploads int           `json:"uploads"` // that were watched
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Most    time.Duration `json:"most_ns"`
}

// Visible says what was seen.
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
