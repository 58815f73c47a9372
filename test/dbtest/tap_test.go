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
