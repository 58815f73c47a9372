package ground

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"roomsensor/bench/fleet"
	"roomsensor/internal/roomsensor"
)

// Enlist makes a team with the devices of a fleet.
func (g *Ground) Enlist(ctx context.Context, f *fleet.Fleet) (team uuid.UUID, err error) {
	err = g.Pool.QueryRow(ctx, "INSERT INTO teams (name) VALUES ('Bench') RETURNING id").Scan(&team)
	if err != nil {
		return team, fmt.Errorf("making a team: %w", err)
	}
	_, err = g.Pool.CopyFrom(ctx, pgx.Identifier{"devices"},
		[]string{"id", "team_id", "hardware_id", "display_name", "metadata", "last_seen_at"},
		pgx.CopyFromSlice(f.Devices, func(i int) ([]any, error) {
			tags := map[string]string{"building": fmt.Sprintf("b%d", i%10), "floor": fmt.Sprint(i % 4)}
			return []any{f.DeviceID(i), team, f.HardwareID(i), f.Name(i), tags, f.Until}, nil
		}))
	if err != nil {
		return team, fmt.Errorf("making devices: %w", err)
	}
	_, err = g.Pool.CopyFrom(ctx, pgx.Identifier{"device_hardware"}, []string{"hardware_id", "device_id"},
		pgx.CopyFromSlice(f.Devices, func(i int) ([]any, error) { return []any{f.HardwareID(i), f.DeviceID(i)}, nil }))
	if err != nil {
		return team, fmt.Errorf("installing units: %w", err)
	}
	return team, nil
}

const (
	// loaders copy at once, each a chunk of its own, so that within a chunk rows lie in the order of arrival.
	loaders    = 2
	chunkWidth = 7 * 24 * time.Hour
)

// ChunkOf is the instant at which the chunk of an instant begins: TimescaleDB counts from the Unix epoch.
func ChunkOf(at time.Time) time.Time {
	epoch := time.Unix(0, 0).UTC()
	return epoch.Add(at.Sub(epoch).Truncate(chunkWidth))
}

// Load stores a part of a fleet's history as it arrives, and counts it.
func (g *Ground) Load(ctx context.Context, f *fleet.Fleet, from, to time.Time) error {
	began, rows := time.Now(), f.Rows(from, to)
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	for _, part := range parts(from, to) {
		group.Go(func() error { return g.copyPart(ctx2, f, part) })
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // Wrapped above.
	}
	var stored int
	err := g.Pool.QueryRow(ctx, "SELECT count(*) FROM readings WHERE bucket_at >= $1 AND bucket_at < $2", from, to).
		Scan(&stored)
	if err != nil || stored != rows {
		return fmt.Errorf("loading readings: %d of %d are there: %w", stored, rows, err)
	}
	g.Say("loaded %d readings in %.1f s", rows, time.Since(began).Seconds())
	return nil
}

// parts cuts a window at the boundaries of chunks.
func parts(from, to time.Time) (list []roomsensor.Window) {
	for at := from; at.Before(to); {
		end := ChunkOf(at).Add(chunkWidth)
		if end.After(to) {
			end = to
		}
		list = append(list, roomsensor.Window{From: at, To: end})
		at = end
	}
	return list
}

func (g *Ground) copyPart(ctx context.Context, f *fleet.Fleet, w roomsensor.Window) error {
	conn, err := g.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Release()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(f.Binary(writer, w.From, w.To)) }()
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, reader, fleet.CopySQL); err != nil {
		_ = reader.CloseWithError(err) // It ends the writer.
		return fmt.Errorf("copying readings: %w", err)
	}
	return nil
}

// Columnstore makes columns of every chunk that ended by an instant, as the policy of the Community edition does, with
// the settings that the migrations gave the table.
func (g *Ground) Columnstore(ctx context.Context, endedBy time.Time) error {
	rows, err := g.Pool.Query(ctx, "SELECT chunk::text FROM show_chunks('readings', older_than => $1::timestamptz) chunk",
		endedBy)
	if err != nil {
		return fmt.Errorf("listing chunks: %w", err)
	}
	chunks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("listing chunks: %w", err)
	}
	for _, chunk := range chunks {
		if _, err := g.Pool.Exec(ctx, "CALL convert_to_columnstore($1::text::regclass)", chunk); err != nil {
			return fmt.Errorf("making columns of %s: %w", chunk, err)
		}
	}
	var converted, before, after int
	err = g.Pool.QueryRow(ctx, "SELECT columnstore_chunks, columnstore_bytes_before, columnstore_bytes"+
		" FROM readings_layout()").Scan(&converted, &before, &after)
	if err != nil || converted != len(chunks) {
		return fmt.Errorf("making columns: %d of %d chunks are: %w", converted, len(chunks), err)
	}
	g.Say("made columns of %d chunks: %d bytes of %d", converted, after, before)
	return nil
}

// Settle brings statistics up to date and writes out what was loaded, so that neither falls into a measurement.
func (g *Ground) Settle(ctx context.Context) error {
	for _, sql := range []string{"VACUUM (ANALYZE) readings", "VACUUM (ANALYZE) devices", "CHECKPOINT"} {
		if _, err := g.Pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("executing %s: %w", sql, err)
		}
	}
	return nil
}
