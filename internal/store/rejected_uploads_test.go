package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// insertReject stores a reject of 10 kB, which was received sequence days after the first.
func (f *fixture) insertReject(t *testing.T, sequence uint64) {
	t.Helper()
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{{
		Arrival: roomsensor.Arrival{At: at("2026-01-01T00:00:00Z").AddDate(0, 0, int(sequence)), Sequence: sequence},
		Reason:  roomsensor.ReasonNotParsable, Detail: "It is empty.", Payload: make([]byte, 10_000),
	}}})
	require.NoError(t, err)
}

// rejectSequences lists the stream sequences of the rejects, newest first.
func (f *fixture) rejectSequences(t *testing.T) (left []uint64) {
	t.Helper()
	rejects, err := f.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 10})
	require.NoError(t, err)
	for i := range rejects {
		left = append(left, rejects[i].Arrival.Sequence)
	}
	return left
}

func TestTrimRejectsBySize(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sequence := range uint64(4) {
		f.insertReject(t, sequence)
	}
	trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: math.MaxInt64, MaxBytes: 1 << 30})
	require.NoError(t, err)
	require.Positive(t, trimmed.Bytes)
	require.Equal(t, roomsensor.RejectTrim{Kept: 4, Bytes: trimmed.Bytes}, trimmed)

	trimmed, err = f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: math.MaxInt64, MaxBytes: 25_000})
	require.NoError(t, err)
	require.Equal(t, roomsensor.RejectTrim{Evicted: 2, Kept: 2, Bytes: trimmed.Bytes}, trimmed)
	require.Equal(t, []uint64{3, 2}, f.rejectSequences(t))
}

// TestTrimRejectsByAge checks that the age counts from when the reject was made: its upload may have waited in the
// queue for longer.
func TestTrimRejectsByAge(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sequence := range uint64(4) {
		f.insertReject(t, sequence)
	}
	f.exec(t, "UPDATE rejected_uploads SET rejected_at = now() - interval '2 hours' WHERE stream_sequence IN (0, 2)")
	trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: time.Hour, MaxBytes: 1 << 30})
	require.NoError(t, err)
	require.Equal(t, roomsensor.RejectTrim{Aged: 2, Kept: 2, Bytes: trimmed.Bytes}, trimmed)
	require.Equal(t, []uint64{3, 1}, f.rejectSequences(t))
}
