package write_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// insertReject stores a reject of 10 kB, which was received sequence days after the first.
func (f *fixture) insertReject(t *testing.T, team *uuid.UUID, sequence uint64) {
	t.Helper()
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{{
		Arrival: roomsensor.Arrival{At: at("2026-01-01T00:00:00Z").AddDate(0, 0, int(sequence)), Sequence: sequence, Team: team},
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

// countedBytes is the size that a reject of insertReject counts with.
const countedBytes = 10_000 + int64(len("It is empty.")) + 300

func TestTrimRejectsBySize(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 b 1", "decision 53 b 4")
	const unbounded = math.MaxInt64
	setup := func(t *testing.T) *fixture {
		t.Helper()
		f := setup(t)
		other := uuid.New()
		for sequence, team := range []*uuid.UUID{&f.TeamID, nil, &other, &f.TeamID, nil, &f.TeamID, &other, nil, &f.TeamID, &f.TeamID} {
			f.insertReject(t, team, uint64(sequence))
		}
		return f
	}
	trim := func(t *testing.T, f *fixture, maxBytes, teamMaxBytes int64) roomsensor.RejectTrim {
		t.Helper()
		trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{
			Keep: math.MaxInt64, MaxBytes: maxBytes, TeamMaxBytes: teamMaxBytes,
		})
		require.NoError(t, err)
		return trimmed
	}

	t.Run("keeps what is within the limits", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		require.Equal(t, roomsensor.RejectTrim{Kept: 10, Bytes: 10 * countedBytes}, trim(t, f, 10*countedBytes, 5*countedBytes))
	})

	t.Run("a team beyond its limit loses its own oldest", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 53 b 2")
		f := setup(t)
		require.Equal(t, roomsensor.RejectTrim{TeamEvicted: 4, Kept: 6, Bytes: 6 * countedBytes}, trim(t, f, unbounded, 2*countedBytes))
		require.Equal(t, []uint64{9, 8, 7, 6, 4, 2}, f.rejectSequences(t))
	})

	t.Run("at the total limit the largest team loses its oldest", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 53 b 3")
		f := setup(t)
		require.Equal(t, roomsensor.RejectTrim{Evicted: 2, Kept: 8, Bytes: 8 * countedBytes}, trim(t, f, 8*countedBytes, unbounded))
		require.Equal(t, []uint64{9, 8, 7, 6, 5, 4, 2, 1}, f.rejectSequences(t))
	})

	t.Run("leaves it to another process that deletes rejects", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		tx, err := f.SQL.Begin(t.Context())
		require.NoError(t, err)
		_, err = db.New().RejectTrimLock(t.Context(), tx)
		require.NoError(t, err)
		require.Equal(t, int64(10), trim(t, f, countedBytes, unbounded).Kept)
		require.NoError(t, tx.Rollback(t.Context()))
		require.Equal(t, int64(1), trim(t, f, countedBytes, unbounded).Kept)
	})
}

// TestRejectRedelivery checks that the redelivery of a batch of rejects writes to the write-ahead log, although it
// changes nothing: only then does its commit wait for the synchronous standby.
func TestRejectRedelivery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.insertReject(t, nil, 1)
	f.Exec(t, "CREATE TABLE standby_awaited (yes boolean)")
	// The transaction has an id, with which its commit waits for the standby, once it wrote something or locked a row.
	f.Exec(t, `CREATE FUNCTION record_wait() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO standby_awaited SELECT pg_current_xact_id_if_assigned() IS NOT NULL; RETURN NULL; END'`)
	f.Exec(t, "CREATE TRIGGER record_wait AFTER INSERT ON rejected_uploads EXECUTE FUNCTION record_wait()")
	f.insertReject(t, nil, 1)
	var awaited bool
	require.NoError(t, f.SQL.QueryRow(t.Context(), "SELECT yes FROM standby_awaited").Scan(&awaited))
	require.True(t, awaited)
	require.Equal(t, []uint64{1}, f.rejectSequences(t))
}

// TestTrimRejectsByAge checks that the age counts from when the reject was made: its upload may have waited in the
// queue for longer.
func TestTrimRejectsByAge(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for sequence := range uint64(4) {
		f.insertReject(t, nil, sequence)
	}
	f.Exec(t, "UPDATE rejected_uploads SET rejected_at = now() - interval '2 hours' WHERE stream_sequence IN (0, 2)")
	trimmed, err := f.TrimRejects(t.Context(), roomsensor.RejectLimits{Keep: time.Hour, MaxBytes: 1 << 30, TeamMaxBytes: 1 << 30})
	require.NoError(t, err)
	require.Equal(t, roomsensor.RejectTrim{Aged: 2, Kept: 2, Bytes: trimmed.Bytes}, trimmed)
	require.Equal(t, []uint64{3, 1}, f.rejectSequences(t))
}
