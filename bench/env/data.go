package env

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

// InsertTeam inserts a team with the devices of a fleet.
func (e *Env) InsertTeam(ctx context.Context, f *fleet.Fleet) (team uuid.UUID, err error) {
	devices := make([]harness.Device, f.Devices)
	for i := range devices {
		devices[i] = harness.Device{
			ID: f.DeviceID(i), HardwareID: f.HardwareID(i), Name: f.Name(i),
			Metadata: map[string]string{"building": fmt.Sprintf("b%d", i%10), "floor": fmt.Sprint(i % 4)},
		}
	}
	if team, err = harness.InsertTeam(ctx, e.Pool, "Bench", devices); err != nil {
		return team, err
	}
	if _, err = e.Pool.Exec(ctx, "UPDATE device_state SET last_seen_at = $1", f.Until); err != nil {
		return team, fmt.Errorf("setting last_seen_at: %w", err)
	}
	return team, nil
}

const (
	// loaders is the number of concurrent COPY statements. Each loads whole chunks, so that the rows of a chunk are
	// stored in the order of arrival.
	loaders       = 2
	chunkInterval = 7 * 24 * time.Hour
)

// ChunkStart returns the start of the chunk of an instant. TimescaleDB counts from the Unix epoch.
func ChunkStart(at time.Time) time.Time {
	epoch := time.Unix(0, 0).UTC()
	return epoch.Add(at.Sub(epoch).Truncate(chunkInterval))
}

// Load stores a part of a fleet's history in the order of arrival, and counts it.
func (e *Env) Load(ctx context.Context, f *fleet.Fleet, from, to time.Time) error {
	began, rows := time.Now(), f.Rows(from, to)
	group, loading := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	for _, chunk := range chunks(from, to) {
		group.Go(func() error { return e.loadChunk(loading, f, chunk) })
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // Wrapped by loadChunk.
	}
	if err := CheckStored(ctx, e.Pool, roomsensor.Window{From: from, To: to}, rows); err != nil {
		return err
	}
	e.Logf("loaded %d readings in %.1f s", rows, time.Since(began).Seconds())
	return nil
}

// CheckStored returns an error unless a database contains as many readings in a window as were written.
func CheckStored(ctx context.Context, pool *pgxpool.Pool, w roomsensor.Window, written int) error {
	var stored int
	err := pool.QueryRow(ctx, "SELECT count(*) FROM readings WHERE bucket_at >= $1 AND bucket_at < $2", w.From, w.To).
		Scan(&stored)
	if err != nil {
		return fmt.Errorf("counting readings: %w", err)
	}
	if stored != written {
		return fmt.Errorf("%d of %d readings are stored", stored, written)
	}
	return nil
}

// chunks splits a window at the boundaries of chunks.
func chunks(from, to time.Time) (list []roomsensor.Window) {
	for at := from; at.Before(to); {
		end := ChunkStart(at).Add(chunkInterval)
		if end.After(to) {
			end = to
		}
		list = append(list, roomsensor.Window{From: at, To: end})
		at = end
	}
	return list
}

func (e *Env) loadChunk(ctx context.Context, f *fleet.Fleet, w roomsensor.Window) error {
	conn, err := e.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Release()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(f.WriteBinary(writer, w.From, w.To)) }()
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, reader, fleet.CopySQL); err != nil {
		_ = reader.CloseWithError(err) // It ends the writer.
		return fmt.Errorf("copying readings: %w", err)
	}
	return nil
}

// ConvertToColumnstore converts every chunk that ended by an instant, as the policy of the Community edition does, with
// the settings of the migrations.
func (e *Env) ConvertToColumnstore(ctx context.Context, endedBy time.Time) error {
	rows, err := e.Pool.Query(ctx, "SELECT chunk::text FROM show_chunks('readings', older_than => $1::timestamptz) chunk",
		endedBy)
	if err != nil {
		return fmt.Errorf("listing chunks: %w", err)
	}
	chunks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("listing chunks: %w", err)
	}
	for _, chunk := range chunks {
		if _, err := e.Pool.Exec(ctx, "CALL convert_to_columnstore($1::text::regclass)", chunk); err != nil {
			return fmt.Errorf("converting chunk %s to the columnstore: %w", chunk, err)
		}
	}
	var converted, before, after int
	err = e.Pool.QueryRow(ctx, "SELECT columnstore_chunks, columnstore_bytes_before, columnstore_bytes"+
		" FROM readings_layout()").Scan(&converted, &before, &after)
	if err != nil || converted != len(chunks) {
		return fmt.Errorf("converting chunks to the columnstore: %d of %d are converted: %w", converted, len(chunks), err)
	}
	e.Logf("converted %d chunks to the columnstore: %d bytes instead of %d", converted, after, before)
	return nil
}

// Vacuum updates statistics and writes dirty pages, so that neither happens during a measurement.
func (e *Env) Vacuum(ctx context.Context) error {
	for _, sql := range []string{"VACUUM (ANALYZE) readings", "VACUUM (ANALYZE) devices", "CHECKPOINT"} {
		if _, err := e.Pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("executing %s: %w", sql, err)
		}
	}
	return nil
}
