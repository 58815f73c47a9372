package app

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// Layout is how the readings lie on disk.
type Layout struct {
	Chunks      int64        `json:"chunks"`
	Bytes       int64        `json:"bytes"`
	KeepSeconds *int64       `json:"keep_seconds"` // null: readings stay
	Columnstore *Columnstore `json:"columnstore"`  // null on the Apache edition
	Hourly      *Hourly      `json:"hourly"`       // null on the Apache edition
}

// Columnstore is what lies there as columns.
type Columnstore struct {
	AfterSeconds *int64   `json:"after_seconds"` // null: never
	Chunks       int64    `json:"chunks"`
	BytesBefore  int64    `json:"bytes_before"`
	Bytes        int64    `json:"bytes"`
	Ratio        *float64 `json:"compression_ratio"` // null while there is none
}

// Hourly is the state of the continuous aggregate. Its lag is meant to be two
// days and some: what is younger is summed up from the readings.
type Hourly struct {
	MaterializedUntil *string `json:"materialized_until"`
	LagSeconds        *int64  `json:"lag_seconds"`
	RefreshedAt       *string `json:"refreshed_at"`
}

func newLayout(l roomsensor.Layout, now time.Time) *Layout {
	layout := &Layout{Chunks: l.Chunks, Bytes: l.Bytes, KeepSeconds: orNever(l.DropAfter)}
	if c := l.Columnstore; c != nil {
		layout.Columnstore = &Columnstore{
			AfterSeconds: orNever(c.After), Chunks: c.Chunks, BytesBefore: c.BytesBefore, Bytes: c.Bytes,
		}
		if c.Bytes > 0 {
			layout.Columnstore.Ratio = new(float64(c.BytesBefore) / float64(c.Bytes))
		}
	}
	if h := l.Hourly; h != nil {
		layout.Hourly = &Hourly{MaterializedUntil: formatted(h.MaterializedUntil), RefreshedAt: formatted(h.RefreshedAt)}
		if h.MaterializedUntil != nil {
			layout.Hourly.LagSeconds = new(int64(now.Sub(*h.MaterializedUntil).Seconds()))
		}
	}
	return layout
}

// orNever is an age in seconds; 0 is never, which is null.
func orNever(age time.Duration) *int64 {
	if age == 0 {
		return nil
	}
	return new(int64(age.Seconds()))
}
