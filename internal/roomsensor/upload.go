package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

// The limits of one upload.
const (
	MaxUploadReadings = 10_000
	MaxUploadBytes    = 1_000_000
)

// MeasuredFrom is the earliest measured_at that is plausible (decision 41).
var MeasuredFrom = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)

// MeasuredAhead is how far past its arrival a measurement may claim to lie (decision 41).
const MeasuredAhead = 10 * time.Minute

// Arrival is when, and as which message, the queue stored an upload. It
// identifies the upload: a redelivery keeps it (decision 39).
type Arrival struct {
	At       time.Time  // UTC, whole microseconds
	Sequence uint64     // in the stream
	Team     *uuid.UUID // of the credential it came with; nil on trusted ground
}

// Reason says why a part of an upload was not taken (decision 41).
type Reason string

// The reasons of decision 41. Where several of the four about time and unit
// hold for one reading, the first in this order is given.
const (
	ReasonNotParsable          Reason = "not_parsable"
	ReasonHardwareIDMismatch   Reason = "hardware_id_mismatch"
	ReasonTooManyReadings      Reason = "too_many_readings"
	ReasonMeasuredAtInvalid    Reason = "measured_at_invalid"
	ReasonMeasuredAtOutOfRange Reason = "measured_at_out_of_range"
	ReasonUnknownUnit          Reason = "unknown_unit"
	ReasonNotInstalled         Reason = "not_installed"
	ReasonValueInvalid         Reason = "value_invalid"
	ReasonFieldInvalid         Reason = "field_invalid"
	ReasonNotStorable          Reason = "not_storable"
)

// Reasons lists every reason in the order of decision 41.
var Reasons = []Reason{
	ReasonNotParsable, ReasonHardwareIDMismatch, ReasonTooManyReadings,
	ReasonMeasuredAtInvalid, ReasonMeasuredAtOutOfRange, ReasonUnknownUnit, ReasonNotInstalled,
	ReasonValueInvalid, ReasonFieldInvalid, ReasonNotStorable,
}

// Reject is one upload and one reason: the upload's fields with only the
// readings that failed for it, or the whole of what arrived (decision 41).
type Reject struct {
	ID         uuid.UUID
	Arrival    Arrival
	HardwareID *string
	Reason     Reason
	Detail     string // a sentence for an operator
	Payload    []byte
	ReplayedAt *time.Time
}

// RejectQuery selects rejects, newest first.
type RejectQuery struct {
	TeamID     *uuid.UUID
	Reason     *Reason
	HardwareID *string
	Since      *time.Time // received at or after
	Limit      int
}

// RejectLimits bound the rejects that are kept.
type RejectLimits struct {
	Keep     time.Duration // since a reject was made
	MaxBytes int64         // of all of them
}

// RejectTrim is what became of rejects that are past a limit.
type RejectTrim struct {
	Aged    int64 // deleted, as their time was over; also where the rest failed
	Crowded int64 // deleted, as the oldest of too many
	Kept    int64
	Bytes   int64 // that the table takes on disk
}

// Installation is an interval of time in which a hardware unit sat in a device
// (decision 40): [From, To); nil is an open end.
type Installation struct {
	HardwareID string
	DeviceID   uuid.UUID
	TeamID     uuid.UUID
	From, To   *time.Time
}

// Covers reports whether the unit sat in the device at an instant.
func (i *Installation) Covers(at time.Time) bool {
	return (i.From == nil || !at.Before(*i.From)) && (i.To == nil || at.Before(*i.To))
}

// DeviceMeasurement is a measurement of the device it belongs to.
type DeviceMeasurement struct {
	Measurement

	DeviceID uuid.UUID
}

// DeviceSeen is what the arrivals of uploads say of a device (decision 39).
type DeviceSeen struct {
	DeviceID   uuid.UUID
	LastSeenAt time.Time // the newest arrival
	Signal     *Signal   // of the newest arrival that carries one
	SignalAt   time.Time
	Firmware   *string // likewise
	FirmwareAt time.Time
}

// Batch is what one transaction of a worker writes. Rows stand once for each
// (device, bucket), sorted by both; Seen once for each device, sorted.
type Batch struct {
	Rows    []DeviceMeasurement
	Seen    []DeviceSeen
	Rejects []Reject
}
