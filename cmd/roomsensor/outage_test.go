package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/procs"
	"roomsensor/internal/roomsensor"
)

// outageFor is how long the database is away; longer by ROOMSENSOR_OUTAGE_FOR=10m.
func outageFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ROOMSENSOR_OUTAGE_FOR")
	if text == "" {
		return 12 * time.Second
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err)
	return length
}

const (
	burstUnits = 8 // that send in turn, or the times would soon lie in the future
	burstEach  = 500
)

// burstOf is the n-th upload of a fleet that sends what it kept: one that no other one repeats.
func burstOf(n int) string {
	var readings []string
	for i := range burstEach {
		at := firstBucket.Add(time.Duration(n/burstUnits*burstEach+i) * roomsensor.BucketLength)
		readings = append(readings, fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d}`, roomsensor.FormatTime(at), (n+i)%1000))
	}
	return fmt.Sprintf(`{"hardware_id":"dev:%d","readings":[%s]}`, 1+n%burstUnits, strings.Join(readings, ","))
}

// outage is receiver and worker whose way to the database can be cut.
type outage struct {
	*plant
	line   *procs.Line
	ops    string // address of the worker's health checks
	worker *procs.Process
	sent   int // uploads
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	var units []string
	for i := range burstUnits {
		units = append(units, fmt.Sprint("dev:", i+1))
	}
	o := &outage{plant: newPlant(t, units...), ops: freeAddress(t)}
	var err error
	o.line, err = procs.NewLine(t.Context(), o.environment["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.line.Close()) })
	o.environment["DATABASE_URL"] = o.line.URL
	o.start("ingest", "--no-worker")
	o.worker = o.startAt(o.ops, "ingest", "--no-receiver")
	return o
}

// upload sends the next upload, which must be taken.
func (o *outage) upload() {
	o.t.Helper()
	require.Equal(o.t, http.StatusAccepted, o.send(burstOf(o.sent)).StatusCode)
	o.sent++
}

// status is what the worker says of its health.
func (o *outage) status(path string) int {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+o.ops+path, nil)
	require.NoError(o.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(o.t, err)
	require.NoError(o.t, response.Body.Close())
	return response.StatusCode
}

// effort is what the worker has taken so far.
type effort struct {
	at       time.Time
	attempts int64
	cpu      time.Duration
	memory   int64
}

func (o *outage) effort() effort {
	o.t.Helper()
	cpu, err := o.worker.CPU()
	require.NoError(o.t, err)
	memory, err := o.worker.PeakMemory()
	require.NoError(o.t, err)
	return effort{time.Now(), o.line.Attempts(), cpu, memory}
}

// While the database is away uploads are accepted, the worker says that it is not ready, goes on, and asks for the
// database now and then instead of all the time. Once it is back everything is stored, in bounded memory.
func TestAnOutageOfTheDatabaseIsWaitedOut(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.upload()
	o.awaitSettled()
	before := o.effort()
	o.line.Cut()
	pace := time.NewTicker(250 * time.Millisecond)
	defer pace.Stop()
	for length := outageFor(t); time.Since(before.at) < length || o.status("/readyz") != http.StatusServiceUnavailable; {
		o.upload()
		require.Equal(t, http.StatusOK, o.status("/livez"))
		require.Less(t, time.Since(before.at), length+bearable, "it goes on saying that it is ready")
		<-pace.C
	}
	away := o.effort()
	took := away.at.Sub(before.at)
	require.Less(t, float64(away.attempts-before.attempts), 20+10*took.Seconds(), "receiver and worker do not hammer")
	require.Less(t, away.cpu-before.cpu, took/2, "the worker does not spin")

	o.line.Mend()
	require.Eventually(t, func() bool { return o.status("/readyz") == http.StatusOK }, bearable, 50*time.Millisecond)
	o.awaitSettledWithin(outageFor(t) + bearable)
	back := o.effort()
	require.Equal(t, o.sent*burstEach, o.count("SELECT count(*) FROM readings"))
	require.Less(t, back.memory-before.memory, int64(64<<20))
	t.Logf("away for %s: %d uploads of %d readings; %d attempts to connect, %s of a processor; stored %s after; peak memory %d MiB, %d before",
		took.Round(time.Second), o.sent, burstEach, away.attempts-before.attempts, away.cpu-before.cpu,
		back.at.Sub(away.at).Round(100*time.Millisecond), back.memory>>20, before.memory>>20)
}
