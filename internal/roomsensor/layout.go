package roomsensor

import "time"

// Layout is how the readings lie on disk.
type Layout struct {
	Chunks, Bytes int64
	Columnstore   *Columnstore // nil on the Apache edition
	Hourly        *Hourly      // nil on the Apache edition
	DropAfter     time.Duration
}

// Columnstore is what lies there as columns.
type Columnstore struct {
	After       time.Duration // the age from which chunks are moved there; 0 is never
	Chunks      int64
	BytesBefore int64 // of the same chunks as rows
	Bytes       int64
}

// Hourly is the state of the continuous aggregate.
type Hourly struct {
	MaterializedUntil *time.Time // nil: nothing is, so far
	RefreshedAt       *time.Time // nil: never
}
