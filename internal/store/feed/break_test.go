package feed_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// The drill of test/backup restores a real server. These tests set what feed_server has after a restore.

// watermark returns a new watermark of the feed.
func (f *fixture) watermark(t testing.TB) time.Time {
	t.Helper()
	mark, err := f.FeedWatermark(t.Context())
	require.NoError(t, err)
	return mark.At
}

// requireAhead checks whether a cursor is refused.
func (f *fixture) requireAhead(t *testing.T, want bool, cursor time.Time) {
	t.Helper()
	_, err := f.EachChange(t.Context(), f.TeamID, roomsensor.FeedQuery{
		Round: roomsensor.FeedRound{From: cursor, To: cursor}, Cursor: &cursor, Most: 1,
	}, func(*roomsensor.Change) bool { return true })
	if !want {
		require.NoError(t, err, "%v", cursor)
		return
	}
	var refused *roomsensor.Error
	require.ErrorAs(t, err, &refused, "%v", cursor)
	require.Equal(t, roomsensor.CodeCursorInvalid, refused.Code)
	require.Equal(t, "cursor", refused.Param)
	require.Contains(t, refused.Message, "restored")
}

// restart makes the next watermark one of another server.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	f.Exec(t, "UPDATE feed_server SET started_at = started_at - interval '1 day'")
}

// passed waits until the clock of the feed has passed a time.
func (f *fixture) passed(t *testing.T, at time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		var passed bool
		require.NoError(t, f.SQL.QueryRow(t.Context(),
			"SELECT clock_timestamp() - interval '110 milliseconds' > $1", at).Scan(&passed))
		return passed
	}, patience, time.Millisecond)
}

// TestFeedRestored checks that a restored database refuses the cursors that are ahead of it, and no others.
func TestFeedRestored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept := f.watermark(t)
	lost := f.watermark(t)
	f.requireAhead(t, false, lost)

	f.Exec(t, "SELECT setval('feed_reserved', feed_micros($1))", kept)
	f.Exec(t, "UPDATE feed_server SET reserved_at = $1", kept)
	f.restart(t)
	f.requireAhead(t, false, kept)
	f.requireAhead(t, true, lost)
	f.passed(t, lost)
	first := f.watermark(t)
	require.True(t, first.After(lost))
	for _, at := range []time.Time{kept, first, f.watermark(t)} {
		f.requireAhead(t, false, at)
	}
	f.requireAhead(t, true, lost)

	f.restart(t) // As after an ordinary restart, which loses nothing.
	second := f.watermark(t)
	for _, at := range []time.Time{kept, first, second} {
		f.requireAhead(t, false, at)
	}
	f.requireAhead(t, true, lost)
	f.requireAhead(t, true, second.Add(time.Hour))
}

// TestFeedRestoredDump checks that a restored dump has a break, although a dump has a later value of the sequence than of
// the tables.
func TestFeedRestoredDump(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept, lost := f.watermark(t), f.watermark(t)
	f.Exec(t, "UPDATE feed_server SET reserved_at = $1, database = 1", kept)
	f.passed(t, lost)
	after := f.watermark(t)
	f.requireAhead(t, false, kept)
	f.requireAhead(t, true, lost)
	f.requireAhead(t, false, after)
}

// TestFeedWriterBeforeBreak checks that no watermark is within a break, although a worker began before the first watermark
// of a server.
func TestFeedWriterBeforeBreak(t *testing.T) {
	t.Parallel()
	f := setup(t)
	before := f.watermark(t)
	f.passed(t, before)
	conn := f.feedConn(t)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: "begin;" + db.FeedBegin})
	require.NoError(t, err)
	var began time.Time
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT now()").Scan(&began))
	f.passed(t, began)

	f.restart(t)
	during := f.watermark(t)
	require.False(t, during.After(before))
	f.requireAhead(t, false, during)
	f.requireAhead(t, true, began)
	require.NoError(t, tx.Commit(t.Context()))
	after := f.watermark(t)
	require.True(t, after.After(began))
	f.requireAhead(t, false, after)
}
