package schema_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
	"roomsensor/schema"
)

const day = 24 * time.Hour

// Each run upwards sets the policies as it is told, whatever they were before.
func TestPoliciesFollowTheSettings(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	for _, want := range []schema.Layout{
		{ColumnstoreAfter: 30 * day},
		{ColumnstoreAfter: 30 * day, DropAfter: 400 * day},
		{ColumnstoreAfter: 14 * day, DropAfter: 800 * day},
		{DropAfter: 800 * day},
		{},
	} {
		require.NoError(t, schema.Up(t.Context(), url, want))
		require.NoError(t, schema.Up(t.Context(), url, want), "and once more")
		var columnstore, drop float64
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT coalesce(extract(epoch FROM columnstore_after), 0), coalesce(extract(epoch FROM drop_after), 0)
			FROM readings_layout()`).Scan(&columnstore, &drop))
		require.Equal(t, want, schema.Layout{
			ColumnstoreAfter: time.Duration(columnstore) * time.Second, DropAfter: time.Duration(drop) * time.Second,
		})
	}
}

// A chunk in the columnstore takes a fraction of its room, is taken out of it
// on the way down, and its readings stay what they were.
func TestColumnstoreKeepsReadings(t *testing.T) {
	t.Parallel()
	dbtest.NeedCommunity(t)
	url := dbtest.New(t).URL
	conn := connect(t, url)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	checksum := func() (sum string) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(),
			`SELECT md5(string_agg(r::text, ';' ORDER BY device_id, bucket_at)) FROM readings r`).Scan(&sum))
		return sum
	}
	exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, measured_at)
		SELECT ('00000000-0000-0000-0000-00000000000' || d)::uuid, TIMESTAMPTZ '2026-01-01 00:00:00Z' + n * INTERVAL '5 minutes',
		       400 + n % 100, NULL, TIMESTAMPTZ '2026-01-01 00:00:03Z' + n * INTERVAL '5 minutes'
		FROM generate_series(0, 4000) n, generate_series(1, 3) d`)
	before := checksum()
	exec(`DO $$ DECLARE c regclass; BEGIN
		FOR c IN SELECT show_chunks('readings') LOOP CALL convert_to_columnstore(c); END LOOP; END $$`)
	require.Equal(t, before, checksum())
	var chunks, columns, then, now int64
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT chunks, columnstore_chunks, columnstore_bytes_before, columnstore_bytes FROM readings_layout()`,
	).Scan(&chunks, &columns, &then, &now))
	require.Positive(t, chunks)
	require.Equal(t, chunks, columns)
	require.Greater(t, then, 3*now)

	undone, err := schema.Down(t.Context(), url)
	require.NoError(t, err)
	require.True(t, undone)
	require.Equal(t, before, checksum())
	require.NoError(t, schema.Up(t.Context(), url, schema.Layout{}))
}
