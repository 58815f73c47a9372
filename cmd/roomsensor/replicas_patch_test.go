package main

import (
	"bytes"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
)

// patch names the device, under an Idempotency-Key.
func (f *fleet) patch(r *replica, name, once string) answer {
	return r.ask(http.MethodPatch, "/devices/"+f.device, f.key, `{"display_name":"`+name+`"}`,
		"Content-Type: application/json", "Idempotency-Key: "+once)
}

// patchUntilTaken sends it again when it is told to: on a machine that is busy enough, who waits for a hundred others
// waits longer than the 5 seconds of decision 23.
func (f *fleet) patchUntilTaken(r *replica, name, once string) answer {
	for {
		got := f.patch(r, name, once)
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusServiceUnavailable || err != nil {
			return got
		}
		select {
		case <-f.t.Context().Done():
			return got
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

// countUpdates has the database count each time that a row of a device is written.
func (f *fleet) countUpdates() {
	f.t.Helper()
	f.exec(`CREATE TABLE updates (at timestamptz DEFAULT clock_timestamp());
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO updates DEFAULT VALUES; RETURN NULL; END';
		CREATE TRIGGER note AFTER UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION note()`)
}

func (f *fleet) updates() int {
	f.t.Helper()
	return one[int](f, "SELECT count(*) FROM updates")
}

// rowVersion changes whenever the row of the device is written.
func (f *fleet) rowVersion() string {
	f.t.Helper()
	return one[string](f, "SELECT xmin || ' ' || ctid FROM devices WHERE id = $1", f.device)
}

// Spec 8, idempotency, rule 2; decision 23.
func TestOneOfAHundredRequestsRuns(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.5", "spec 8, idempotency rule 2")
	f := launch(t)
	f.countUpdates()
	const requests = 100
	answers := make(chan answer)
	for i := range requests {
		go func() { answers <- f.patchUntilTaken(f.replicas[i%2], "Once", "all") }()
	}
	bodies, replayed := map[string]int{}, 0
	for range requests {
		got := <-answers
		require.NoError(t, got.err)
		require.Equal(t, http.StatusOK, got.status, got.body)
		bodies[got.body]++
		if got.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	require.Equal(t, requests-1, replayed)
	require.Len(t, bodies, 1, "the answer of the one that ran")
	require.Equal(t, 1, f.updates())
}

// crossing is a replica of a fleet that reaches the database by a way on which a message can stand still.
type crossing struct {
	*fleet
	replica *replica
	held    chan struct{}
	gone    chan struct{}
}

// launchCrossing has the message that is chosen stand still until the replica is gone; it gets no further.
func launchCrossing(t *testing.T, choose func(dbtest.Message) bool) *crossing {
	t.Helper()
	c := &crossing{fleet: launch(t), held: make(chan struct{}, 1), gone: make(chan struct{})}
	c.countUpdates()
	c.replica = startReplica(t, dbtest.Tap(t, c.environment["DATABASE_URL"], func(m dbtest.Message) bool {
		if !choose(m) {
			return true
		}
		c.held <- struct{}{}
		<-c.gone
		return false
	}))
	return c
}

// dieInTheMiddle sends a change and kills the replica once the message stands.
func (c *crossing) dieInTheMiddle() {
	c.t.Helper()
	answers := make(chan answer, 1)
	go func() { answers <- c.patch(c.replica, "Crossing", "once") }()
	select {
	case <-c.held:
	case got := <-answers:
		require.FailNow(c.t, "it was answered", "%+v", got)
	case <-time.After(bearable):
		require.FailNow(c.t, "nothing was held", c.replica.log.String())
	}
	c.replica.Kill()
	close(c.gone)
	require.Error(c.t, (<-answers).err, "the client has no answer")
}

// The process dies when the change is committed and nobody knows it: the retry, on another process, replays.
func TestKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.4", "decision 23.8", "spec 8, idempotency rule 2")
	c := launchCrossing(t, func(m dbtest.Message) bool {
		return m.FromServer && m.Type == 'C' && bytes.Equal(m.Body, []byte("COMMIT\x00"))
	})
	c.dieInTheMiddle()
	require.Equal(t, 1, c.updates())
	version := c.rowVersion()
	for _, r := range c.replicas {
		got := c.patch(r, "Crossing", "once")
		require.Equal(t, http.StatusOK, got.status, got.body)
		require.Equal(t, "true", got.header.Get("Idempotent-Replayed"))
		require.Contains(t, got.body, `"display_name":"Crossing"`)
	}
	require.Equal(t, 1, c.updates())
	require.Equal(t, version, c.rowVersion(), "a replay writes nothing")
}

// The process dies before the commit: nothing was changed, and the retry runs.
func TestKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 23.3", "decision 23.6", "spec 8, idempotency rule 1")
	c := launchCrossing(t, func(m dbtest.Message) bool {
		return m.Type == 'Q' && bytes.Equal(m.Body, []byte("commit\x00"))
	})
	c.dieInTheMiddle()
	require.Zero(t, c.updates())
	got := c.patch(c.replicas[0], "Crossing", "once")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Empty(t, got.header.Get("Idempotent-Replayed"))
	require.Equal(t, 1, c.updates())
}
