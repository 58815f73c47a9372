package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// replicasEnv is two API processes over one database, with a device.
type replicasEnv struct {
	*env
	device string
}

// TestReplicas checks what must hold across API processes, also while they are stopped, killed and started again.
func TestReplicas(t *testing.T) {
	t.Parallel()
	shared := newEnv(t)
	shared.apis = []*server{shared.start("api"), shared.start("api")}
	shared.exec(`CREATE TABLE device_updates (device_id uuid);
		CREATE FUNCTION note_update() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO device_updates VALUES (NEW.id); RETURN NULL; END';
		CREATE TRIGGER note_update AFTER UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION note_update()`)
	for i, test := range []struct {
		name string
		run  func(*replicasEnv)
	}{
		{"revoked key", (*replicasEnv).testRevokedKey},
		{"expired key", (*replicasEnv).testExpiredKey},
		{"one of many PATCHes runs", (*replicasEnv).testManyPatches},
		{"killed between commit and response", (*replicasEnv).testKilledAfterCommit},
		{"killed before commit", (*replicasEnv).testKilledBeforeCommit},
		{"rate limit", (*replicasEnv).testRateLimit},
		{"pagination", (*replicasEnv).testPagination},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &replicasEnv{env: shared.newTeam(t)}
			e.device = e.newDevice("dev:" + strconv.Itoa(i+1))
			test.run(e)
		})
	}
}

// keyUse is what requests with a key, sent all the time, have shown so far.
type keyUse struct {
	mu      sync.Mutex
	lastOK  time.Time // when the last request was sent that succeeded
	refusal string
}

// useKey sends requests to both processes all the time, until each has refused three in a row.
func (e *replicasEnv) useKey(key string) *keyUse {
	use := &keyUse{}
	var clients sync.WaitGroup
	for _, api := range e.apis {
		clients.Go(func() {
			ticker := time.NewTicker(pollEvery)
			defer ticker.Stop()
			for refused, end := 0, time.Now().Add(patience); refused < 3 && time.Now().Before(end); <-ticker.C {
				sent := time.Now()
				got := e.send(api, http.MethodGet, "/v1/team", key, "")
				use.mu.Lock()
				if got.status == http.StatusOK {
					use.lastOK = sent
					refused = 0
				} else {
					use.refusal = got.body
					refused++
				}
				use.mu.Unlock()
			}
		})
	}
	clients.Wait()
	return use
}

// testRevokedKey checks that a revoked key stops working within 5 seconds, also if it is used all the time (decision 24).
func (e *replicasEnv) testRevokedKey() {
	conformance.Covers(e.t, "decision 24 k", "spec 5, rule 6, revoked")
	for _, api := range e.apis {
		require.Equal(e.t, http.StatusOK, e.send(api, http.MethodGet, "/v1/team", e.key, "").status)
	}
	revoked := make(chan time.Time, 1)
	go func() {
		e.command("key", "revoke", e.keyID)
		revoked <- time.Now()
	}()
	use := e.useKey(e.key)
	require.Contains(e.t, use.refusal, string(roomsensor.CodeAPIKeyRevoked))
	require.Less(e.t, use.lastOK.Sub(<-revoked), 5*time.Second)
}

// testExpiredKey checks that a key stops working at the instant of its expiry (decision 24).
func (e *replicasEnv) testExpiredKey() {
	conformance.Covers(e.t, "decision 24 l", "spec 5, rule 6, expired")
	expires := time.Now().Add(time.Second).Truncate(time.Microsecond)
	_, key := e.newKey("--expires-at", roomsensor.FormatTime(expires))
	use := e.useKey(key)
	require.Contains(e.t, use.refusal, string(roomsensor.CodeAPIKeyExpired))
	require.False(e.t, use.lastOK.After(expires), "a request sent %s after the expiry succeeded", use.lastOK.Sub(expires))
}

// patch names the device, with an Idempotency-Key.
func (e *replicasEnv) patch(api *server, name, idempotencyKey string) response {
	return e.send(api, http.MethodPatch, "/v1/devices/"+e.device, e.key, `{"display_name":"`+name+`"}`,
		"Content-Type: application/json", "Idempotency-Key: "+idempotencyKey)
}

// patchUntilAnswered retries as a 503 asks for: on a slow machine a request may wait for others longer than the 5 seconds
// of decision 23.
func (e *replicasEnv) patchUntilAnswered(api *server, name, idempotencyKey string) response {
	for {
		got := e.patch(api, name, idempotencyKey)
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusServiceUnavailable || err != nil {
			return got
		}
		select {
		case <-e.t.Context().Done():
			return got
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

func (e *replicasEnv) updates() int {
	e.t.Helper()
	return value[int](e.env, "SELECT count(*) FROM device_updates WHERE device_id = $1", e.device)
}

// testManyPatches checks that one of a hundred PATCHes with the same Idempotency-Key runs, and that the others get its
// response (decision 23).
func (e *replicasEnv) testManyPatches() {
	conformance.Covers(e.t, "decision 23 e", "spec 8, idempotency, rule 2")
	const requests = 100
	responses := make(chan response)
	for i := range requests {
		go func() { responses <- e.patchUntilAnswered(e.apis[i%2], "One", "all") }()
	}
	bodies, replayed := map[string]int{}, 0
	for range requests {
		got := <-responses
		require.NoError(e.t, got.err)
		require.Equal(e.t, http.StatusOK, got.status, got.body)
		bodies[got.body]++
		if got.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	require.Equal(e.t, requests-1, replayed)
	require.Len(e.t, bodies, 1)
	require.Equal(e.t, 1, e.updates())
}

// killDuringPatch sends a PATCH to a third process, and kills it when a message that stopAt selects is on its way to or
// from the database. The message goes no further.
func (e *replicasEnv) killDuringPatch(stopAt func(dbtest.Message) bool) {
	e.t.Helper()
	stopped, killed := make(chan struct{}, 1), make(chan struct{})
	third := *e.env
	third.settings = map[string]string{"DATABASE_URL": dbtest.Tap(e.t, e.settings["DATABASE_URL"], func(m dbtest.Message) bool {
		if !stopAt(m) {
			return true
		}
		stopped <- struct{}{}
		<-killed
		return false
	})}
	api := third.start("api")
	responses := make(chan response, 1)
	go func() { responses <- e.patch(api, "Crossing", "once") }()
	select {
	case <-stopped:
	case got := <-responses:
		require.FailNow(e.t, "the PATCH was answered", "%+v", got)
	case <-time.After(patience):
		require.FailNow(e.t, "no message was stopped", api.log.String())
	}
	api.Kill()
	close(killed)
	require.Error(e.t, (<-responses).err, "the client has no response")
}

// testKilledAfterCommit checks that if a process is killed after the commit, a retry on another process replays the
// response.
func (e *replicasEnv) testKilledAfterCommit() {
	conformance.Covers(e.t, "decision 23 d", "decision 23 h", "spec 8, idempotency, rule 2")
	e.killDuringPatch(func(m dbtest.Message) bool {
		return m.FromServer && m.Type == 'C' && bytes.Equal(m.Body, []byte("COMMIT\x00"))
	})
	require.Equal(e.t, 1, e.updates())
	const rowVersion = "SELECT xmin || ' ' || ctid FROM devices WHERE id = $1"
	version := value[string](e.env, rowVersion, e.device)
	for _, api := range e.apis {
		got := e.patch(api, "Crossing", "once")
		require.Equal(e.t, http.StatusOK, got.status, got.body)
		require.Equal(e.t, "true", got.header.Get("Idempotent-Replayed"))
		require.Contains(e.t, got.body, `"display_name":"Crossing"`)
	}
	require.Equal(e.t, 1, e.updates())
	require.Equal(e.t, version, value[string](e.env, rowVersion, e.device), "a replay writes nothing")
}

// testKilledBeforeCommit checks that if a process is killed before the commit, nothing is changed and a retry runs.
func (e *replicasEnv) testKilledBeforeCommit() {
	conformance.Covers(e.t, "decision 23 c", "decision 23 f", "spec 8, idempotency, rule 1")
	e.killDuringPatch(func(m dbtest.Message) bool { return m.Type == 'Q' && bytes.Equal(m.Body, []byte("commit\x00")) })
	require.Zero(e.t, e.updates())
	got := e.patch(e.apis[0], "Crossing", "once")
	require.Equal(e.t, http.StatusOK, got.status, got.body)
	require.Empty(e.t, got.header.Get("Idempotent-Replayed"))
	require.Equal(e.t, 1, e.updates())
}

// burst sends requests with a key to both processes at once and returns how many succeeded.
func (e *replicasEnv) burst(key string, clients, each int) (succeeded int) {
	e.t.Helper()
	responses := make(chan response)
	for i := range clients {
		go func() {
			for range each {
				responses <- e.send(e.apis[i%2], http.MethodGet, "/v1/team", key, "")
			}
		}()
	}
	for range clients * each {
		got := <-responses
		require.NoError(e.t, got.err)
		header := func(name string) int {
			n, err := strconv.Atoi(got.header.Get(name))
			require.NoError(e.t, err, "%s: %v", name, got.header)
			return n
		}
		require.Equal(e.t, 600, header("RateLimit-Limit"))
		require.Positive(e.t, header("RateLimit-Reset"))
		require.LessOrEqual(e.t, header("RateLimit-Reset"), 600)
		require.GreaterOrEqual(e.t, header("RateLimit-Remaining"), 0)
		if got.status == http.StatusOK {
			succeeded++
			continue
		}
		require.Equal(e.t, http.StatusTooManyRequests, got.status)
		require.Equal(e.t, header("RateLimit-Reset"), header("Retry-After"))
		require.Zero(e.t, header("RateLimit-Remaining"))
	}
	return succeeded
}

// bounce stops the first process, kills the second one, and starts both again.
func (e *replicasEnv) bounce() {
	e.t.Helper()
	e.stop(e.apis[0])
	e.apis[1].Kill()
	for _, api := range e.apis {
		e.restart(api)
	}
}

// testRateLimit checks that the count is exact across processes, and survives a restart and a crash (decision 25).
func (e *replicasEnv) testRateLimit() {
	conformance.Covers(e.t, "decision 25 a", "decision 25 d 1", "decision 25 d 2", "decision 25 f", "spec 8, rate, limit")
	require.Equal(e.t, 600, e.burst(e.key, 8, 80))
	require.Zero(e.t, e.burst(e.key, 2, 5))
	e.bounce()
	require.Zero(e.t, e.burst(e.key, 2, 5), "the count is not in the memory of a process")
	_, other := e.newKey()
	require.Equal(e.t, 10, e.burst(other, 2, 5), "each key has its own count")

	e.exec(`UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes' WHERE key_id = $1`, e.keyID)
	require.Eventually(e.t, func() bool { return e.send(e.apis[0], http.MethodGet, "/v1/team", e.key, "").status == http.StatusOK },
		patience, pollEvery, "requests succeed again 10 minutes later")
}

// pagination is the state of one client that reads a list page by page.
type pagination struct {
	path, query string   // query is empty after the last page
	before      []string // ids in the list before the first page was read
	read        []string // ids read so far
}

// testPagination checks that any process continues a list that another one began, also one that was started in between
// (decisions 11 and 13). Each item that was in the list before the first page is read once, in order, while others are
// added.
func (e *replicasEnv) testPagination() {
	conformance.Covers(e.t, "decision 11 f")
	e.exec(`INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(102, 112) i`, e.team)
	e.exec(`INSERT INTO assignments (device_id, type, label, home_or_travel, started_at, ended_at)
		SELECT $1, 'place', 'Room', 'home', now() - (i + 1) * INTERVAL '1 day', now() - i * INTERVAL '1 day'
		FROM generate_series(1, 12) i`, e.device)
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT $1, time_bucket('5 minutes', now()) - i * INTERVAL '10 minutes', 400 FROM generate_series(1, 120) i`, e.device)
	device := "/v1/devices/" + e.device
	lists := []*pagination{
		{path: "/v1/devices", query: "limit=3"},
		{path: "/v1/devices/current", query: "limit=3"},
		{path: device + "/assignments", query: "limit=3"},
		{path: device + "/readings", query: "last=24h&limit=30"},
	}
	for _, p := range lists {
		var next string
		p.before, next = e.page(e.apis[0], p.path, "")
		require.Empty(e.t, next)
	}
	for i, more := 0, true; more; i++ {
		more = false
		for _, p := range lists {
			if p.query == "" {
				continue
			}
			var ids []string
			ids, p.query = e.page(e.apis[i%2], p.path, p.query)
			p.read = append(p.read, ids...)
			more = true
		}
		e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm)
			SELECT $1, time_bucket('5 minutes', now()) - (2 * i + 1) * INTERVAL '5 minutes', 500
			FROM generate_series(20 * $2, 20 * $2 + 19) i ON CONFLICT DO NOTHING`, e.device, i)
		e.exec(`INSERT INTO devices (team_id, hardware_id) VALUES ($1, 'dev:' || $2::int)`, e.team, 200+i)
		if i == 1 {
			e.bounce()
		}
	}
	for _, p := range lists {
		e.requireComplete(p)
	}
}

// page reads one page of any list and returns the ids of its items and the query of the next page.
func (e *replicasEnv) page(api *server, path, query string) (ids []string, next string) {
	e.t.Helper()
	got := e.send(api, http.MethodGet, path+"?"+query, e.key, "")
	require.NoError(e.t, got.err)
	require.Equal(e.t, http.StatusOK, got.status, got.body)
	var list struct {
		Data []struct {
			DeviceID     string `json:"device_id"`
			AssignmentID string `json:"assignment_id"`
			BucketAt     string `json:"bucket_at"`
		} `json:"data"`
		NextCursor *string `json:"next_cursor"`
	}
	require.NoError(e.t, json.Unmarshal([]byte(got.body), &list))
	for _, item := range list.Data {
		ids = append(ids, item.AssignmentID+item.BucketAt+item.DeviceID)
	}
	if list.NextCursor != nil {
		next = "cursor=" + url.QueryEscape(*list.NextCursor)
	}
	return ids, next
}

func (e *replicasEnv) requireComplete(p *pagination) {
	e.t.Helper()
	position := map[string]int{}
	for i, id := range p.read {
		require.NotContains(e.t, position, id, "%s: read twice", p.path)
		position[id] = i
	}
	last := -1
	for _, id := range p.before {
		require.Contains(e.t, position, id, "%s: left out", p.path)
		require.Greater(e.t, position[id], last, "%s: out of order", p.path)
		last = position[id]
	}
}
