package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

const (
	// MaxExportRows is the most readings that one export may contain (decision 30).
	MaxExportRows = 250_000
	// ExportCountCap is where the service stops to count the readings of an export that is too large (decision 30).
	ExportCountCap = 1_000_000
)

// ExportQuery selects readings of a team for a CSV export, by bucket_at, then device_id, both ascending (decision 27).
type ExportQuery struct {
	Window  Window
	Devices []uuid.UUID // nil: all devices of the team; empty: none
	Lines   bool        // also count the distinct buckets, which are the lines of the wide shape
}

// ExportRow is one reading of an export.
type ExportRow struct {
	DeviceID uuid.UUID
	BucketAt time.Time
	Values   Values
}

// TooManyRowsError means that an export would contain more than MaxExportRows.
type TooManyRowsError struct {
	Rows int // at most ExportCountCap + 1, which means "more than ExportCountCap"
	// FitsUntil is the end of the longest window with the same start that would fit; nil if not even one bucket does.
	FitsUntil *time.Time
}

func (e *TooManyRowsError) Error() string { return "too many rows for one export" }
