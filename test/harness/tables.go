package harness

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/client"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

// Tables is the content of the tables that uploads change.
type Tables struct {
	Readings []ledger.Row
	Hours    []ledger.Hour
	Rejects  []ledger.Reject
	States   []ledger.State
}

// ReadTables reads the tables without indexes, so that rows which an index lacks are found too. It leaves out the
// readings of excluded devices.
func (s *Service) ReadTables(ctx context.Context, excluded []uuid.UUID) (t Tables, err error) {
	excluded = append([]uuid.UUID{}, excluded...) // Not nil, which would be NULL.
	err = s.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		const noIndexes = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"
		if _, err := conn.Exec(ctx, noIndexes); err != nil {
			return err //nolint:wrapcheck // Wrapped below.
		}
		t.Readings, err = collect(ctx, conn, `
			SELECT device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at
			FROM readings WHERE device_id <> ALL ($1)`, scanReading, excluded)
		if err != nil {
			return err
		}
		t.Hours, err = collect(ctx, conn, `
			SELECT device_id, hour, co2_ppm_count, temp_c_count, humidity_pct_count, lux_count, spl_db_count
			FROM readings_hourly WHERE device_id <> ALL ($1)`, scanHour, excluded)
		if err != nil {
			return err
		}
		t.Rejects, err = collect(ctx, conn, "SELECT stream_sequence, reason, payload FROM rejected_uploads",
			pgx.RowToStructByPos[ledger.Reject])
		if err != nil {
			return err
		}
		t.States, err = collect(ctx, conn, `
			SELECT device_id, last_seen_at, coalesce(firmware_version, ''), coalesce(rssi_dbm, 0) FROM device_state`, scanState)
		return err
	})
	if err != nil {
		return t, fmt.Errorf("reading the tables: %w", err)
	}
	return t, nil
}

func scanReading(row pgx.CollectableRow) (r ledger.Row, err error) {
	var bucket time.Time
	var values [roomsensor.MetricCount]*float32
	err = row.Scan(&r.Device, &bucket, &values[0], &values[1], &values[2], &values[3], &values[4],
		&r.MeasuredAt, &r.IngestedAt)
	r.Bucket = bucket.Unix()
	for i, x := range values {
		if x != nil {
			r.Values.Set(roomsensor.Metrics[i], *x)
		}
	}
	return r, err //nolint:wrapcheck // Wrapped by ReadTables.
}

func scanHour(row pgx.CollectableRow) (h ledger.Hour, err error) {
	c := &h.Counts
	err = row.Scan(&h.Device, &h.Hour, &c[0], &c[1], &c[2], &c[3], &c[4])
	return h, err //nolint:wrapcheck // Wrapped by ReadTables.
}

func scanState(row pgx.CollectableRow) (s ledger.State, err error) {
	var seen *time.Time
	err = row.Scan(&s.Device, &seen, &s.Firmware, &s.RSSI)
	if seen != nil {
		s.LastSeenAt = seen.UTC()
	}
	return s, err //nolint:wrapcheck // Wrapped by ReadTables.
}

func collect[T any](
	ctx context.Context, conn *pgx.Conn, sql string, scan pgx.RowToFunc[T], args ...any,
) ([]T, error) {
	rows, _ := conn.Query(ctx, sql, args...) // CollectRows returns the error.
	return pgx.CollectRows(rows, scan)       //nolint:wrapcheck // Wrapped by ReadTables.
}

// readStream records in the ledger which uploads the stream contains.
func (s *Service) readStream(ctx context.Context, l *ledger.Ledger) error {
	stream, err := s.JS.Stream(ctx, queue.StreamName)
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	remaining := stream.CachedInfo().State.Msgs
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	defer messages.Stop()
	for ; remaining > 0; remaining-- {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err == nil {
			err = recordArrival(l, msg)
		}
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
	}
	return nil
}

func recordArrival(l *ledger.Ledger, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err //nolint:wrapcheck // Wrapped by readStream.
	}
	id, ok := ledger.IDOf(msg.Data())
	if !ok || !l.Arrived(id, ledger.Arrival{Sequence: meta.Sequence.Stream, At: meta.Timestamp}) {
		return fmt.Errorf("message %d contains no upload of the ledger", meta.Sequence.Stream)
	}
	return nil
}

// readExports reads all readings of all teams through the API, as CSV.
func (s *Service) readExports(ctx context.Context, f *Fleet) (rows []ledger.Row, err error) {
	for _, t := range f.Teams {
		exported, err := s.readExport(ctx, f, t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, exported...)
	}
	return rows, nil
}

func (s *Service) readExport(ctx context.Context, f *Fleet, t Team) (rows []ledger.Row, err error) {
	// The service may answer 503 with Retry-After for a moment after the database was killed.
	const maxAttempts = 10
	c, err := NewClient(s.API, t.Key, client.WithMaxAttempts(maxAttempts))
	if err != nil {
		return nil, err
	}
	query := client.ExportQuery{Window: client.Between(f.Now.Add(-ledger.Oldest), f.Now.Add(time.Hour))}
	for r, err := range c.ExportReadings(ctx, query) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowOf(&r))
	}
	return rows, nil
}

// NewClient returns a client of the API at a host and port that opens a connection for each request: a trial kills the
// processes at the other end. Responses are not compressed, so that buffers do not hold a large one.
func NewClient(address, key string, options ...client.Option) (*client.Client, error) {
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	return client.New("http://"+address, key, append([]client.Option{client.WithHTTPClient(h)}, options...)...)
}

func rowOf(r *client.DeviceReading) (row ledger.Row) {
	row.Key = ledger.KeyOf(r.DeviceID, r.BucketAt)
	for m, x := range map[roomsensor.Metric]*float64{
		roomsensor.CO2: r.CO2PPM, roomsensor.Temp: r.TempC, roomsensor.Humidity: r.HumidityPct,
		roomsensor.Lux: r.Lux, roomsensor.Sound: r.SPLDB,
	} {
		if x != nil {
			row.Values.Set(m, float32(*x))
		}
	}
	return row
}
