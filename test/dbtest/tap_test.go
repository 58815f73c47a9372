package dbtest

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestTap(t *testing.T) {
	t.Parallel()
	var statements, commits atomic.Int32
	url := Tap(t, New(t).URL, func(m Message) bool {
		if m.IsStatement() {
			statements.Add(1)
		}
		if m.FromServer && m.Type == 'C' && bytes.Equal(m.Body, []byte("COMMIT\x00")) {
			commits.Add(1)
		}
		return true
	})
	conn := connect(t, url)
	before := statements.Load()
	for range 3 {
		require.Equal(t, 7, ask[int](t, conn, "SELECT 7"))
	}
	require.EqualValues(t, 3, statements.Load()-before)
	require.NoError(t, pgx.BeginFunc(t.Context(), conn, func(pgx.Tx) error { return nil }))
	require.EqualValues(t, 5, statements.Load()-before)
	require.EqualValues(t, 1, commits.Load())
}

// TestTapDelay checks that a delayed response of the server was executed, and that the client does not know it.
func TestTapDelay(t *testing.T) {
	t.Parallel()
	db := New(t)
	delayed, release := make(chan struct{}), make(chan struct{})
	url := Tap(t, db.URL, func(m Message) bool {
		if m.FromServer && m.Type == 'C' && bytes.HasPrefix(m.Body, []byte("INSERT")) {
			close(delayed)
			<-release
		}
		return true
	})
	answered := make(chan error, 1)
	go func() {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), "INSERT INTO teams (name) VALUES ('one')")
			_ = conn.Close(t.Context())
		}
		answered <- err
	}()
	<-delayed
	require.Equal(t, 1, ask[int](t, connect(t, db.URL), "SELECT count(*) FROM teams"))
	require.Empty(t, answered)
	close(release)
	require.NoError(t, <-answered)
}

func TestTapClose(t *testing.T) {
	t.Parallel()
	db := New(t)
	conn, err := pgx.Connect(t.Context(), Tap(t, db.URL, func(m Message) bool {
		return !bytes.HasPrefix(m.Body, []byte("commit"))
	}))
	require.NoError(t, err)
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO teams (name) VALUES ('one')")
		return err
	})
	require.Error(t, err)
	require.True(t, conn.IsClosed())
	require.Equal(t, 0, ask[int](t, connect(t, db.URL), "SELECT count(*) FROM teams"))
}
