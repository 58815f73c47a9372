package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/roomsensor"
)

// found is what the tables hold.
type found struct {
	aside []uuid.UUID

	readings []ledger.Row
	hours    []ledger.Hour
	rejects  []ledger.Reject
	states   []ledger.State
}

// find reads the tables, but for the devices that are no matter of the ledger. No index is used: what one would hide is
// found.
func (s *Service) find(ctx context.Context, fleet *Fleet) (f found, err error) {
	f.aside = append([]uuid.UUID{}, fleet.Aside...) // Not nil, which would be NULL.
	err = s.Ask(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		const without = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"
		if _, err := conn.Exec(ctx, without); err != nil {
			return err //nolint:wrapcheck // Below.
		}
		for _, read := range []func(context.Context, *pgx.Conn) error{
			f.readReadings, f.readHours, f.readRejects, f.readStates,
		} {
			if err := read(ctx, conn); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return f, fmt.Errorf("reading the tables: %w", err)
	}
	return f, nil
}

// metrics are the five values of a row as the database gives them.
type metrics [roomsensor.MetricCount]*float32

func (m *metrics) values() (v roomsensor.Values) {
	for i, x := range m {
		if x != nil {
			v.Set(roomsensor.Metrics[i], *x)
		}
	}
	return v
}

func (f *found) readReadings(ctx context.Context, conn *pgx.Conn) (err error) {
	f.readings, err = collect(ctx, conn, `
		SELECT device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at FROM readings
		WHERE device_id <> ALL ($1)`,
		func(row pgx.CollectableRow) (r ledger.Row, err error) {
			var bucket time.Time
			var m metrics
			err = row.Scan(&r.Device, &bucket, &m[0], &m[1], &m[2], &m[3], &m[4], &r.MeasuredAt, &r.IngestedAt)
			r.Bucket, r.Values = bucket.Unix(), m.values()
			return r, err //nolint:wrapcheck // By find.
		}, f.aside)
	return err
}

func (f *found) readHours(ctx context.Context, conn *pgx.Conn) (err error) {
	f.hours, err = collect(ctx, conn, `
		SELECT device_id, hour, co2_ppm_count, temp_c_count, humidity_pct_count, lux_count, spl_db_count
		FROM readings_hourly WHERE device_id <> ALL ($1)`,
		func(row pgx.CollectableRow) (h ledger.Hour, err error) {
			c := &h.Counts
			err = row.Scan(&h.Device, &h.Hour, &c[0], &c[1], &c[2], &c[3], &c[4])
			return h, err //nolint:wrapcheck // By find.
		}, f.aside)
	return err
}

func (f *found) readRejects(ctx context.Context, conn *pgx.Conn) (err error) {
	f.rejects, err = collect(ctx, conn, "SELECT stream_sequence, reason, payload FROM rejected_uploads",
		pgx.RowToStructByPos[ledger.Reject])
	return err
}

func (f *found) readStates(ctx context.Context, conn *pgx.Conn) (err error) {
	f.states, err = collect(ctx, conn, `
		SELECT id, last_seen_at, coalesce(firmware_version, ''), coalesce(rssi_dbm, 0) FROM devices`,
		func(row pgx.CollectableRow) (s ledger.State, err error) {
			var seen *time.Time
			err = row.Scan(&s.Device, &seen, &s.Firmware, &s.RSSI)
			if seen != nil {
				s.LastSeenAt = seen.UTC()
			}
			return s, err //nolint:wrapcheck // By find.
		})
	return err
}

func collect[T any](
	ctx context.Context, conn *pgx.Conn, sql string, scan pgx.RowToFunc[T], args ...any,
) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err //nolint:wrapcheck // By find.
	}
	return pgx.CollectRows(rows, scan) //nolint:wrapcheck // By find.
}
