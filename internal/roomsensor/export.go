package roomsensor

import "context"

// ReadingExport is a snapshot of the readings that a query selects. The caller must close it.
type ReadingExport interface {
	// Rows returns the number of readings.
	Rows() int
	// Lines returns the number of distinct buckets, if the query asks for it.
	Lines() int
	// Each calls do with every reading, ordered by bucket and device, and stops at the first error of do.
	Each(ctx context.Context, do func(*ExportRow) error) error
	Close()
}

// AggregateExport are the lines of an export of aggregates.
type AggregateExport interface {
	Rows() int
	// Each calls do with every line, ordered by bucket and device, and stops at the first error of do.
	Each(ctx context.Context, do func(*AggregateRow) error) error
}
