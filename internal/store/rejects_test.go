package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// reject makes a reject of 10 kB, so many days after the first.
func (f *fixture) reject(t *testing.T, sequence uint64) {
	t.Helper()
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{{
		Arrival: roomsensor.Arrival{At: at("2026-01-01T00:00:00Z").AddDate(0, 0, int(sequence)), Sequence: sequence},
		Reason:  roomsensor.ReasonNotParsable, Detail: "It is empty.", Payload: make([]byte, 10_000),
	}}})
	require.NoError(t, err)
}

func (f *fixture) sequences(t *testing.T) (left []uint64) {
	t.Helper()
	rejects, err := f.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 10})
	require.NoError(t, err)
	for i := range rejects {
		left = append(left, rejects[i].Arrival.Sequence)
	}
	return left
}

const ages = 1 << 62 // longer than any reject is old

func TestTheOldestRejectsMakeRoom(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sequence := range uint64(4) {
		f.reject(t, sequence)
	}
	trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: ages, MaxBytes: 1 << 30})
	require.NoError(t, err)
	require.Positive(t, trimmed.Bytes)
	require.Equal(t, roomsensor.RejectTrim{Kept: 4, Bytes: trimmed.Bytes}, trimmed)

	trimmed, err = f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: ages, MaxBytes: 25_000})
	require.NoError(t, err)
	require.Equal(t, roomsensor.RejectTrim{Crowded: 2, Kept: 2, Bytes: trimmed.Bytes}, trimmed)
	require.Equal(t, []uint64{3, 2}, f.sequences(t))
}

// The time of a reject runs from when it was made: the upload of one may have
// waited in the queue for longer than that.
func TestRejectsGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sequence := range uint64(4) {
		f.reject(t, sequence)
	}
	f.exec(t, "UPDATE rejected_uploads SET rejected_at = now() - interval '2 hours' WHERE stream_sequence IN (0, 2)")
	trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: time.Hour, MaxBytes: 1 << 30})
	require.NoError(t, err)
	require.Equal(t, roomsensor.RejectTrim{Aged: 2, Kept: 2, Bytes: trimmed.Bytes}, trimmed)
	require.Equal(t, []uint64{3, 1}, f.sequences(t))
}
