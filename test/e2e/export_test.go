package e2e_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/test/conformance"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// heap returns the bytes of heap that a process uses, by its metrics.
func (e *env) heap(s *server) float64 {
	e.t.Helper()
	metrics, err := proctest.Metrics(e.t.Context(), s.ops)
	require.NoError(e.t, err)
	heap := metrics["go_memstats_heap_inuse_bytes"].GetMetric()
	require.Len(e.t, heap, 1)
	return heap[0].GetGauge().GetValue()
}

// export starts an export of all readings.
func (e *env) export(ctx context.Context, key string, shape client.Shape) (*client.Export, error) {
	c, err := harness.NewClient(strings.TrimPrefix(e.apis[0].url, "http://"), key, client.WithMaxAttempts(1))
	if err != nil {
		return nil, err
	}
	return c.ExportCSV(ctx, client.ExportQuery{Window: client.Last(90 * 24 * time.Hour), Shape: shape})
}

// lineCounter counts the lines that are written to it.
type lineCounter int

func (l *lineCounter) Write(text []byte) (int, error) {
	*l += lineCounter(bytes.Count(text, []byte("\n")))
	return len(text), nil
}

// maxExportHeap limits what 8 exports of slow clients add to the heap of a process: 44 bytes per row, and the same again
// until the garbage is collected.
const maxExportHeap = 2 * 8 * 44 * 250_000

// TestLargestExports checks exports of 250,000 readings, the largest ones, and clients that disconnect.
func TestLargestExports(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30 b", "decision 32 b", "decision 32 f")
	e := newEnv(t)
	e.apis = []*server{e.start("api")}
	device := e.newDevice("dev:1")
	e.exec(`INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 10) i`, e.team)
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d.id, time_bucket('5 minutes', now()) - i * INTERVAL '5 minutes', 400 + i % 500, 20.125 + i % 7, 40.5, i % 1000, 38.25
		FROM devices d, generate_series(1, 25000) i`)
	e.exec("ANALYZE readings")
	e.checkConcurrentExports(device)
	e.exec(`ALTER TABLE readings RENAME TO stored`) // In the view, every query waits for longer than its timeout of 30 s.
	e.exec(`CREATE VIEW readings AS SELECT device_id, bucket_at FROM pg_sleep(60), stored`)
	e.exec(`GRANT SELECT ON readings TO PUBLIC`)
	for _, shape := range []client.Shape{client.Long, client.Wide} {
		e.checkDisconnect(shape)
	}
}

// checkConcurrentExports checks that 8 exports run at once, in bounded memory, while pages are served (decision 32). No
// transaction stays open while their clients read nothing.
func (e *env) checkConcurrentExports(device string) {
	e.t.Helper()
	_, second := e.newKey()
	before := e.heap(e.apis[0])
	highest := before
	var exports [8]*client.Export
	var counts [8]lineCounter
	for i := range exports {
		var err error
		exports[i], err = e.export(e.t.Context(), []string{e.key, second}[i%2], []client.Shape{client.Long, client.Wide}[i/2%2])
		require.NoError(e.t, err)
		defer func() { require.NoError(e.t, exports[i].Close()) }()
	}
	require.Eventually(e.t, func() bool { return e.exportBackends("xact_start IS NOT NULL") == 0 }, patience, time.Millisecond)
	for open := len(exports); open > 0; highest = max(highest, e.heap(e.apis[0])) {
		open = 0
		for i, export := range exports { // In turn, so that every client is slow.
			_, err := io.CopyN(&counts[i], export, 1<<20)
			if err != nil {
				require.ErrorIs(e.t, err, io.EOF)
			} else {
				open++
			}
		}
		e.api().readings(device, client.Window{})
	}
	for i, export := range exports {
		require.Equal(e.t, int(counts[i])-1, export.Rows)
		require.EqualValues(e.t, []int{250_001, 25_001}[i/2%2], counts[i])
	}
	require.Less(e.t, highest-before, float64(maxExportHeap))
}

// exportBackends counts the connections for exports that are in a state.
func (e *env) exportBackends(state string) int {
	return value[int](e, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'roomsensor api export' AND `+state)
}

// checkDisconnect checks that the query of an export ends because its client disconnects.
func (e *env) checkDisconnect(shape client.Shape) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if got, err := e.export(ctx, e.key, shape); err == nil {
			<-ctx.Done() // The client reads nothing.
			_ = got.Close()
		}
	}()
	require.Eventually(e.t, func() bool { return e.exportBackends("wait_event = 'PgSleep'") == 1 }, patience, time.Millisecond, e.apis[0].log)
	cancel()
	require.Eventually(e.t, func() bool { return e.exportBackends("state <> 'idle'") == 0 }, 20*time.Second, time.Millisecond)
	<-ended
}
