package main

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
)

func TestMaintain(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t).URL
	o := &operator{t, map[string]string{"DATABASE_URL": url}}
	require.Empty(t, o.data("maintain"))
	o.fails(exitUsage, "--after", "maintain", "--after", "soon")
	o.fails(exitUsage, "--limit", "maintain", "--limit", "0")

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at) SELECT gen_random_uuid(), '2026-01-01Z' FROM generate_series(1, 100)`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // Until the statistics know of it.
		var n int
		_, err := conn.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM chunks_to_order('2026-02-01Z')").Scan(&n))
		return n == 1
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, conn.Close(t.Context()))
	chunks := o.data("maintain", "--after", "14d")
	require.Len(t, chunks, 1)
	require.Equal(t, true, chunks[0]["ordered"])
	require.Nil(t, chunks[0]["reason"])
	require.Empty(t, o.data("maintain"), "once")
}
