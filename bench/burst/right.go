package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/internal/roomsensor"
)

// judge holds what is served and stored to what was sent.
type judge struct {
	pool   *pgxpool.Pool
	reader *reader
	looks  int // at the whole of /devices/current
	wrong  int // states in it that were not right
}

func newJudge(ctx context.Context, database string, r *reader) (*judge, error) {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	return &judge{pool: pool, reader: r}, nil
}

func (j *judge) close() {
	j.pool.Close()
	j.reader.close()
}

// lag is by how much /devices/current may be late (decision 43).
const lag = time.Second

// watch looks again and again until stop is closed, and once more then.
func (j *judge) watch(ctx context.Context, stop <-chan struct{}) error {
	for last := false; !last; {
		if err := j.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("watching /devices/current: %w", ctx.Err())
		case <-stop:
			last = true
		case <-time.After(lag):
		}
	}
	return j.look(ctx)
}

// look holds the newest reading that is served of every device to those that the table had before the question and
// after the answer: what is stored while it is asked may show or not, what was there must.
func (j *judge) look(ctx context.Context) error {
	before, err := j.newest(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("watching /devices/current: %w", ctx.Err())
	case <-time.After(lag):
	}
	states, err := j.reader.current(ctx, "")
	if err != nil {
		return err
	}
	after, err := j.newest(ctx)
	if err != nil {
		return err
	}
	j.looks++
	if len(states) != len(after) {
		j.wrong++
	}
	for i := range states {
		bucket := states[i].bucketOf()
		if bucket.Before(before[states[i].DeviceID]) || bucket.After(after[states[i].DeviceID]) {
			j.wrong++
		}
	}
	return nil
}

// newest is the bucket of the newest reading of every device; the zero time for none.
func (j *judge) newest(ctx context.Context) (map[uuid.UUID]time.Time, error) {
	rows, err := j.pool.Query(ctx, `SELECT d.id, coalesce(r.bucket_at, '0001-01-01T00:00:00Z') FROM devices d
		LEFT JOIN LATERAL (SELECT bucket_at FROM readings WHERE device_id = d.id ORDER BY bucket_at DESC LIMIT 1) r ON true`)
	if err != nil {
		return nil, fmt.Errorf("reading the newest buckets: %w", err)
	}
	list := map[uuid.UUID]time.Time{}
	var id uuid.UUID
	var bucket time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &bucket}, func() error {
		list[id] = bucket
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the newest buckets: %w", err)
	}
	return list, nil
}

// verdict compares the readings of the late devices with what they measured.
type verdict struct {
	Stored  int `json:"stored"`
	Lost    int `json:"lost"`    // measured and not stored
	Wrong   int `json:"wrong"`   // stored with another time or value
	Phantom int `json:"phantom"` // stored and never measured
	Rejects int `json:"rejects"`
}

func (v *verdict) clean() bool { return v.Lost+v.Wrong+v.Phantom+v.Rejects == 0 }

func (j *judge) compare(ctx context.Context, devices []uuid.UUID, l *load) (v verdict, err error) {
	for i, device := range devices {
		stored, err := j.readings(ctx, device)
		if err != nil {
			return v, err
		}
		v.Stored += len(stored)
		for _, m := range l.measured[i] {
			got, there := stored[m.Bucket()]
			switch {
			case !there:
				v.Lost++
			case got != m:
				v.Wrong++
			}
			delete(stored, m.Bucket())
		}
		v.Phantom += len(stored)
	}
	if err := j.pool.QueryRow(ctx, "SELECT count(*) FROM rejected_uploads").Scan(&v.Rejects); err != nil {
		return v, fmt.Errorf("counting rejects: %w", err)
	}
	return v, nil
}

// readings is what is stored of a device, by bucket.
func (j *judge) readings(ctx context.Context, device uuid.UUID) (map[time.Time]roomsensor.Measurement, error) {
	rows, err := j.pool.Query(ctx, `SELECT measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db
		FROM readings WHERE device_id = $1`, device)
	if err != nil {
		return nil, fmt.Errorf("reading what is stored: %w", err)
	}
	stored := map[time.Time]roomsensor.Measurement{}
	var at time.Time
	var values [roomsensor.MetricCount]*float32
	_, err = pgx.ForEachRow(rows, []any{&at, &values[0], &values[1], &values[2], &values[3], &values[4]}, func() error {
		m := roomsensor.Measurement{MeasuredAt: at.UTC()}
		for i, x := range values {
			if x != nil {
				m.Values.Set(roomsensor.Metrics[i], *x)
			}
		}
		stored[m.Bucket()] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is stored: %w", err)
	}
	return stored, nil
}
