package roomsensor

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The limits of one upload.
const (
	MaxUploadReadings = 10_000
	MaxUploadBytes    = 1_000_000
)

// MeasuredFrom is the earliest plausible measured_at (decision 41).
var MeasuredFrom = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)

// MeasuredAhead is how far measured_at may lie after the arrival of its upload (decision 41).
const MeasuredAhead = 10 * time.Minute

// Arrival identifies an upload by the queue message that carries it. A redelivery has the same Arrival (decision 39).
type Arrival struct {
	At       time.Time  // when the queue stored the message; UTC, whole microseconds
	Sequence uint64     // in the stream
	Team     *uuid.UUID // of the ingest key; nil for a trusted publisher

	// Source is the source whose mapping reads the message; nil for an upload. A message of a source has a team.
	Source    *uuid.UUID
	Precision string // of the times in its line protocol, as the sender gave it; otherwise empty
}

// DeviceMeasurement is a measurement and the device to which it was assigned.
type DeviceMeasurement struct {
	Measurement

	DeviceID uuid.UUID
	Rule     SampleRule
}

// CompareMeasurements orders measurements by device, then by time.
func CompareMeasurements(a, b DeviceMeasurement) int {
	return cmp.Or(bytes.Compare(a.DeviceID[:], b.DeviceID[:]), a.MeasuredAt.Compare(b.MeasuredAt))
}

// DeviceHeartbeat is the state of a device according to the arrivals of its uploads (decision 39).
type DeviceHeartbeat struct {
	DeviceID   uuid.UUID
	LastSeenAt time.Time // newest arrival
	Signal     *Signal   // of the newest arrival that carries one; nil if none does
	SignalAt   time.Time
	Firmware   *string // of the newest arrival that carries one; nil if none does
	FirmwareAt time.Time
}

// Batch is what the worker writes in one transaction. It is here because the worker, which builds it, and the store do
// not import each other. Rows has each (device, bucket) once, sorted by both, without samples; Samples has each
// (device, time of the measurement) once, sorted by both, with the rules Sample and SampleIfAny; Seen has each device
// once, sorted.
type Batch struct {
	Rows    []DeviceMeasurement
	Samples []DeviceMeasurement
	Seen    []DeviceHeartbeat
	Rejects []Reject
}

// Reason is why a part of an upload was rejected (decision 41).
type Reason string

// The reasons of decision 41. If several of measured_at_invalid, measured_at_out_of_range, unknown_unit, not_installed
// and no_metric apply to one reading, the first in this order is given (decision 45 c).
const (
	ReasonNotParsable          Reason = "not_parsable"
	ReasonHardwareIDMismatch   Reason = "hardware_id_mismatch"
	ReasonTooManyReadings      Reason = "too_many_readings"
	ReasonMeasuredAtInvalid    Reason = "measured_at_invalid"
	ReasonMeasuredAtOutOfRange Reason = "measured_at_out_of_range"
	ReasonUnknownUnit          Reason = "unknown_unit"
	ReasonNotInstalled         Reason = "not_installed"
	ReasonNoMetric             Reason = "no_metric"
	ReasonValueInvalid         Reason = "value_invalid"
	ReasonFieldInvalid         Reason = "field_invalid"
	ReasonTooManyChunks        Reason = "too_many_chunks"
	ReasonNotStorable          Reason = "not_storable"
	ReasonNotMapped            Reason = "not_mapped" // A10.8
)

// Reasons lists every reason in the order of decision 41, and that of sources last.
var Reasons = []Reason{
	ReasonNotParsable, ReasonHardwareIDMismatch, ReasonTooManyReadings,
	ReasonMeasuredAtInvalid, ReasonMeasuredAtOutOfRange, ReasonUnknownUnit, ReasonNotInstalled,
	ReasonNoMetric, ReasonValueInvalid, ReasonFieldInvalid, ReasonTooManyChunks, ReasonNotStorable,
	ReasonNotMapped,
}

// ReasonNames returns all reasons as text, separated by commas.
func ReasonNames() string {
	names := make([]string, len(Reasons))
	for i, reason := range Reasons {
		names[i] = string(reason)
	}
	return strings.Join(names, ", ")
}

// Reject is what was rejected of one upload for one reason: the upload with only the readings that failed, or the whole
// message if it could not be parsed (decision 41).
type Reject struct {
	ID         uuid.UUID
	Arrival    Arrival
	HardwareID *string // of the unit; nil if none is known, as of an unknown alias
	Unit       *string // the unit as its sender names it: hardware id or alias (A12.4); nil: HardwareID
	Reason     Reason
	Detail     string // full sentence for an operator
	Payload    []byte
	ReplayedAt *time.Time // last successful replay; nil before the first
}

// RejectQuery selects rejects, newest first. A nil field matches all.
type RejectQuery struct {
	TeamID     *uuid.UUID
	Reason     *Reason
	HardwareID *string
	Unit       *string
	SourceID   *uuid.UUID
	Since      *time.Time // received at or after
	Limit      int
}

// Selects reports whether the query selects a reject by team, reason, unit and source.
func (q *RejectQuery) Selects(r *Reject) bool {
	return (q.TeamID == nil || r.Arrival.Team != nil && *q.TeamID == *r.Arrival.Team) &&
		(q.Reason == nil || *q.Reason == r.Reason) &&
		(q.Unit == nil || r.Unit != nil && *q.Unit == *r.Unit) &&
		(q.SourceID == nil || r.Arrival.Source != nil && *q.SourceID == *r.Arrival.Source)
}

// TeamRejectQuery selects a page of a team's rejects: by received_at descending, then by id descending. A nil field
// matches all.
type TeamRejectQuery struct {
	Reason     *Reason
	HardwareID *string
	Unit       *string
	SourceID   *uuid.UUID
	Since      *time.Time      // received at or after
	After      *RejectPosition // last item of the previous page; nil on the first page
	Limit      int
}

// RejectGroup is the number of rejects of a team with the same reason and unit.
type RejectGroup struct {
	Reason      Reason
	Unit        *string // nil if the messages name none
	Count       int64
	Replayed    int64 // of them, those that were replayed at least once, fully stored or not
	First, Last time.Time
}

// RejectGroupQuery selects a page of the groups of a team, those with the newest reject first. A nil field matches all.
type RejectGroupQuery struct {
	Reason   *Reason
	Unit     *string
	SourceID *uuid.UUID
	Skip     int
	Limit    int
}

// RejectGroupPage selects the rejects of a group after a position, the oldest first. A nil field matches all.
type RejectGroupPage struct {
	Reasons  []Reason
	Unit     *string
	SourceID *uuid.UUID
	After    RejectPosition // the zero value is before all of them
	Limit    int
}

// RejectPosition is the position of a reject in the list of its team.
type RejectPosition struct {
	ReceivedAt time.Time
	ID         uuid.UUID
}

// RejectLimits bounds the rejects that are kept (decision 53 b).
type RejectLimits struct {
	Keep         time.Duration // since a reject was made
	MaxBytes     int64         // of all rejects together
	TeamMaxBytes int64         // of the rejects of one team; those without a team count as one team
}

// RejectTrim is the result of applying RejectLimits. The numbers of deleted rejects are set even if the rest failed.
type RejectTrim struct {
	Aged        int64 // deleted because they exceeded Keep
	Evicted     int64 // deleted, the oldest of the largest team first, because of MaxBytes
	TeamEvicted int64 // deleted, the oldest of the team first, because of TeamMaxBytes
	Kept        int64
	Bytes       int64 // size of their payloads and details, and 300 bytes for each
}
