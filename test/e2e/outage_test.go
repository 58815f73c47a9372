package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// firstBucket is the bucket of the first reading of a unit; the n-th upload of a unit has the n-th bucket.
var firstBucket = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

func bucketAt(n int) string {
	return roomsensor.FormatTime(firstBucket.Add(time.Duration(n) * roomsensor.BucketLength))
}

// outageLength returns how long the database is unavailable: ROOMSENSOR_OUTAGE_FOR, by default 3 seconds.
func outageLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ROOMSENSOR_OUTAGE_FOR")
	if text == "" {
		return 3 * time.Second
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err)
	return length
}

const (
	outageUnits    = 8 // enough that no measurement lies in the future, also after a long outage
	outageReadings = 500
)

// outageUpload returns the n-th upload. No other one has the same readings.
func outageUpload(n int) string {
	readings := make([]string, outageReadings)
	for i := range readings {
		readings[i] = fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d}`, bucketAt(n/outageUnits*outageReadings+i), (n+i)%1000)
	}
	return fmt.Sprintf(`{"hardware_id":"dev:%d","readings":[%s]}`, 1+n%outageUnits, strings.Join(readings, ","))
}

// health returns the status of a path of a process's ops address.
func (e *env) health(s *server, path string) int {
	ops := &server{url: "http://" + s.ops}
	return e.send(ops, http.MethodGet, path, "", "").status
}

// TestDatabaseOutage checks that while the database is unavailable, the receiver accepts uploads, and the worker reports
// not ready, stays alive and retries without using much CPU. Afterwards it stores everything, in bounded memory.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	e := newStreamEnv(t)
	for i := range outageUnits {
		e.newDevice(fmt.Sprint("dev:", i+1))
	}
	proxy, err := proctest.NewProxy(t.Context(), e.settings["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	e.settings["DATABASE_URL"] = proxy.URL
	e.receiver = e.start("ingest", "--no-worker")
	worker := e.start("ingest", "--no-receiver")
	uploads := 0
	upload := func() {
		require.Equal(t, http.StatusAccepted, e.upload(outageUpload(uploads)).status)
		uploads++
	}
	upload()
	e.settle()
	cpu, err := worker.CPU()
	require.NoError(t, err)
	_, memory, err := worker.Memory()
	require.NoError(t, err)

	proxy.Cut()
	begin, attempts := time.Now(), proxy.Attempts()
	pace := time.NewTicker(250 * time.Millisecond)
	defer pace.Stop()
	for length := outageLength(t); time.Since(begin) < length || e.health(worker, "/readyz") != http.StatusServiceUnavailable; {
		upload()
		require.Equal(t, http.StatusOK, e.health(worker, "/livez"))
		require.Less(t, time.Since(begin), length+patience, "the worker still reports ready")
		<-pace.C
	}
	took := time.Since(begin)
	cpuAfter, err := worker.CPU()
	require.NoError(t, err)
	require.Less(t, float64(proxy.Attempts()-attempts), 20+10*took.Seconds(), "connection attempts of receiver and worker")
	require.Less(t, cpuAfter-cpu, took/2, "CPU time of the worker")

	proxy.Restore()
	require.Eventually(t, func() bool { return e.health(worker, "/readyz") == http.StatusOK }, patience, pollEvery)
	e.settleWithin(outageLength(t) + patience)
	require.Equal(t, uploads*outageReadings, value[int](e.env, "SELECT count(*) FROM readings"))
	_, memoryAfter, err := worker.Memory()
	require.NoError(t, err)
	require.Less(t, memoryAfter-memory, int64(64<<20), "peak memory of the worker")
	t.Logf("outage of %s: %d uploads of %d readings; CPU %s; peak memory %d MiB, %d before",
		took.Round(time.Second), uploads, outageReadings, cpuAfter-cpu, memoryAfter>>20, memory>>20)
}

// largeUpload returns the n-th upload of nearly a megabyte.
func largeUpload(n int) string {
	return fmt.Sprintf(`{"hardware_id":"dev:1","padding":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`,
		strings.Repeat("x", 900_000), bucketAt(n), n)
}

// fill publishes large uploads from the n-th on, until one is refused or limit are stored. It returns the number of the
// next upload. They have no team, whose backlog would be limited.
func (e *streamEnv) fill(n, limit int) int {
	e.t.Helper()
	for ; n < limit; n++ {
		_, err := e.js.Publish(e.t.Context(), "uploads.-.dev:1", []byte(largeUpload(n)))
		if _, refused := errors.AsType[*jetstream.APIError](err); refused {
			return n
		}
		require.NoError(e.t, err)
	}
	return n
}

// TestFullStream checks that a stream full of uploads that no worker has seen refuses more and drops nothing, and that
// it accepts uploads again once a worker has stored some.
func TestFullStream(t *testing.T) {
	t.Parallel()
	e := newStreamEnv(t)
	e.settings["STREAM_MAX_BYTES"] = "16MiB"
	e.newDevice("dev:1")
	e.receiver = e.start("ingest", "--no-worker")
	next := e.fill(0, 100)
	require.Less(t, next, 20, "the stream holds 16 MiB")
	got := e.upload(largeUpload(next))
	require.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
	require.Equal(t, "10", got.header.Get("Retry-After"))
	require.Equal(t, uint64(next), e.stream().CachedInfo().State.Msgs, "it keeps what it has")

	e.start("ingest", "--no-receiver")
	e.settle()
	limit := next + 2
	require.Eventually(t, func() bool {
		next = e.fill(next, limit)
		return next == limit
	}, patience, 100*time.Millisecond)
	e.settle()
	require.Equal(t, limit, value[int](e.env, "SELECT count(*) FROM readings WHERE co2_ppm = extract(epoch FROM bucket_at - $1) / 300", firstBucket))
	require.Less(t, e.stream().CachedInfo().State.Msgs, uint64(limit), "stored uploads were purged")
}
