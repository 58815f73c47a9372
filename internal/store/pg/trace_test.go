package pg

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

func TestStatementName(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"-- name: DeviceList :many\nSELECT 1": "DeviceList", "begin": "begin", "begin;\n-- name: X": "begin",
		"begin isolation level serializable": "begin", "commit": "commit", "": "",
	} {
		require.Equal(t, want, statementName(sql), sql)
	}
}

// TestUntracedStatement checks that a statement outside of a recorded span, as without tracing, costs no memory.
func TestUntracedStatement(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts those of all goroutines.
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "of a request")
	require.Zero(t, testing.AllocsPerRun(1000, func() { untraced(ctx) }))
}

func untraced(ctx context.Context) {
	ctx = tracer{}.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "-- name: DeviceList :many\nSELECT 1"})
	tracer{}.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{})
}
