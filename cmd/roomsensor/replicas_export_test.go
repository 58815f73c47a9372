package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// fillExport gives the team 250,000 readings of 10 devices, the most that an export holds.
func (f *fleet) fillExport() {
	f.t.Helper()
	f.exec(`INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 10) i`, f.team)
	f.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d.id, time_bucket('5 minutes', now()) - i * INTERVAL '5 minutes', 400 + i % 500, 20.125 + i % 7, 40.5, i % 1000, 38.25
		FROM devices d, generate_series(1, 25000) i`)
	f.exec("ANALYZE readings")
}

// heap is what the memory manager of the process holds for objects.
func (r *replica) heap() float64 {
	r.t.Helper()
	got, err := r.client.Get("http://" + r.opsURL + "/metrics")
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, got.Body.Close()) }()
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "go_memstats_heap_inuse_bytes "); ok {
			bytes, err := strconv.ParseFloat(text, 64)
			require.NoError(r.t, err)
			return bytes
		}
	}
	require.FailNow(r.t, "there is no such metric")
	return 0
}

// export begins an export of all readings.
func (r *replica) export(ctx context.Context, key, shape string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.baseURL+"/readings.csv?last=90d&shape="+shape, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept-Encoding", "identity")
	return r.client.Do(request)
}

// lines counts the lines that are written to it.
type lines int

func (l *lines) Write(text []byte) (int, error) {
	*l += lines(bytes.Count(text, []byte("\n")))
	return len(text), nil
}

// mostHeap is what 8 exports may add to the heap of the process; they add some 6 MiB.
const mostHeap = 64 << 20

// The largest exports, and their clients.
func TestLargestExports(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 30.2", "decision 32.2", "decision 32.6")
	f := launch(t)
	f.fillExport()
	f.exportAtOnce()
	f.leaveExports()
}

// Decision 32: 8 exports of 250,000 rows run at once, in a memory that does not depend on their size, and pages are
// answered meanwhile.
func (f *fleet) exportAtOnce() {
	t, r := f.t, f.replicas[0]
	t.Helper()
	before, most := r.heap(), 0.0
	_, second := f.newKey()
	var exports [8]*http.Response
	var counts [8]lines
	for i := range exports {
		var err error
		exports[i], err = r.export(t.Context(), []string{f.key, second}[i%2], []string{"long", "wide"}[i/2%2])
		require.NoError(t, err)
		defer func() { require.NoError(t, exports[i].Body.Close()) }()
		require.Equal(t, http.StatusOK, exports[i].StatusCode)
	}
	// One reader takes a piece of each in turn, so that all are slow.
	for open := len(exports); open > 0; most = max(most, r.heap()) {
		open = 0
		for i, export := range exports {
			_, err := io.CopyN(&counts[i], export.Body, 1<<20)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
			} else {
				open++
			}
		}
		page := r.get("/devices/"+f.device+"/readings", f.key)
		require.Equal(t, http.StatusOK, page.status, page.body)
	}
	for i, export := range exports {
		require.Equal(t, strconv.Itoa(int(counts[i])-1), export.Header.Get("X-Row-Count"))
		require.EqualValues(t, []int{250_001, 25_001}[i/2%2], counts[i])
	}
	t.Logf("heap: %.1f MiB before, %.1f MiB at most", before/(1<<20), most/(1<<20))
	require.Less(t, most-before, float64(mostHeap))
}

// exporting is how many queries of exports are at some point.
func (f *fleet) exporting(point string) int {
	f.t.Helper()
	return one[int](f, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'roomsensor api export' AND `+point)
}

// leave begins an export, goes away at a point, and returns how long its query went on.
func (f *fleet) leave(shape, point string) time.Duration {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if got, err := f.replicas[0].export(ctx, f.key, shape); err == nil {
			<-ctx.Done() // It reads nothing.
			_ = got.Body.Close()
		}
	}()
	require.Eventually(f.t, func() bool { return f.exporting(point) == 1 }, bearable, time.Millisecond, f.replicas[0].log)
	cancel()
	left := time.Now()
	require.Eventually(f.t, func() bool { return f.exporting("state <> 'idle'") == 0 }, bearable, time.Millisecond)
	took := time.Since(left)
	<-ended
	return took
}

// A client that goes away takes its query with it, within a second.
func (f *fleet) leaveExports() {
	t := f.t
	t.Helper()
	for _, shape := range []string{"long", "wide"} {
		took := f.leave(shape, "wait_event = 'ClientWrite'")
		t.Logf("%s, while rows were sent: gone after %s", shape, took)
		require.Less(t, took, time.Second)

		lock, err := f.sql.Begin(t.Context())
		require.NoError(t, err)
		_, err = lock.Exec(t.Context(), "LOCK TABLE readings IN ACCESS EXCLUSIVE MODE")
		require.NoError(t, err)
		took = f.leave(shape, "wait_event_type = 'Lock'")
		t.Logf("%s, while rows were counted: gone after %s", shape, took)
		require.Less(t, took, time.Second)
		require.NoError(t, lock.Rollback(t.Context()))
	}
}
