package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

// MaxPage is the most items a page holds (spec 8, Page size).
const MaxPage = 1000

// ReadingQuery selects a page of a device's readings, by bucket_at descending
// (decision 10).
type ReadingQuery struct {
	Window Window
	Before *time.Time // bucket_at of the last row of the page before; nil on the first
	Limit  int
}

// MaxExportRows is the most readings one export may hold (decision 30).
const MaxExportRows = 250_000

// ExportCountCap is where counting the rows of a refused export ends (decision 30).
const ExportCountCap = 1_000_000

// ExportQuery selects readings of a team for a CSV export, by bucket_at, then
// device_id, both ascending (decision 27).
type ExportQuery struct {
	Window  Window
	Devices []uuid.UUID // nil: every device of the team; empty: none
	Lines   bool        // count the distinct buckets too
}

// ExportRow is one reading of an export.
type ExportRow struct {
	DeviceID uuid.UUID
	BucketAt time.Time
	Values   Values
}

// TooManyRowsError says that an export would hold more than MaxExportRows.
type TooManyRowsError struct {
	Rows int // at most ExportCountCap + 1, which stands for any number above the cap
	// FitsUntil is the end of the longest window from the same start that
	// would fit; nil when even one bucket does not.
	FitsUntil *time.Time
}

func (e *TooManyRowsError) Error() string { return "too many rows for one export" }

// NamedDevice is what a CSV column or cell needs of a device.
type NamedDevice struct {
	ID          uuid.UUID
	DisplayName *string
}
