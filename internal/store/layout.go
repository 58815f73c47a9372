package store

import (
	"context"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
)

// Layout tells how the readings lie on disk. Every migration must be applied.
func (s *Store) Layout(ctx context.Context) (roomsensor.Layout, error) {
	row, err := s.queries.ReadingsLayout(ctx, s.pool)
	if err != nil {
		return roomsensor.Layout{}, fmt.Errorf("reading the layout: %w", translate(err))
	}
	layout := roomsensor.Layout{
		Chunks: row.Chunks, Bytes: row.Bytes, DropAfter: time.Duration(row.DropAfterSeconds) * time.Second,
	}
	if row.ColumnstoreChunks == nil {
		return layout, nil
	}
	layout.Columnstore = &roomsensor.Columnstore{
		After: time.Duration(row.ColumnstoreAfterSeconds) * time.Second, Chunks: *row.ColumnstoreChunks,
		BytesBefore: *row.ColumnstoreBytesBefore, Bytes: *row.ColumnstoreBytes,
	}
	layout.Hourly = &roomsensor.Hourly{MaterializedUntil: utc(row.MaterializedUntil), RefreshedAt: utc(row.RefreshedAt)}
	return layout, nil
}
