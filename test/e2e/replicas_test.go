package e2e_test

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// replicasEnv is two API processes over one database, with a device.
type replicasEnv struct {
	*env
	device string
}

// TestReplicas kills an API process while it changes a device: a retry on another one does not change it again.
func TestReplicas(t *testing.T) {
	t.Parallel()
	shared := newEnv(t)
	shared.apis = []*server{shared.start("api"), shared.start("api")}
	shared.exec(`CREATE TABLE device_updates (device_id uuid);
		CREATE FUNCTION note_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
			'BEGIN INSERT INTO device_updates VALUES (NEW.id); RETURN NULL; END';
		CREATE TRIGGER note_update AFTER UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION note_update()`)
	for i, test := range []struct {
		name string
		run  func(*replicasEnv)
	}{
		{"killed between commit and response", (*replicasEnv).testKilledAfterCommit},
		{"killed before commit", (*replicasEnv).testKilledBeforeCommit},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &replicasEnv{env: shared.newTeam(t)}
			e.device = e.newDevice("dev:" + strconv.Itoa(i+1))
			test.run(e)
		})
	}
}

// patch names the device, with an Idempotency-Key.
func (e *replicasEnv) patch(api *server, name, idempotencyKey string) response {
	return e.send(api, http.MethodPatch, "/v1/devices/"+e.device, e.key, `{"display_name":"`+name+`"}`,
		"Content-Type: application/json", "Idempotency-Key: "+idempotencyKey)
}

func (e *replicasEnv) updates() int {
	e.t.Helper()
	return value[int](e.env, "SELECT count(*) FROM device_updates WHERE device_id = $1", e.device)
}

// killDuringPatch sends a PATCH to a third process, and kills it when a message that stopAt selects is on its way to or
// from the database, on the connection that updated the device. The message goes no further.
func (e *replicasEnv) killDuringPatch(stopAt func(dbtest.Message) bool) {
	e.t.Helper()
	stopped, killed := make(chan struct{}, 1), make(chan struct{})
	var updated sync.Map // The process also commits other transactions, on other connections.
	third := *e.env
	third.settings = map[string]string{"DATABASE_URL": dbtest.Tap(e.t, e.settings["DATABASE_URL"], func(m dbtest.Message) bool {
		if m.FromServer && m.Type == 'C' && bytes.Equal(m.Body, []byte("UPDATE 1\x00")) {
			updated.Store(m.Connection, true)
		}
		if _, ok := updated.Load(m.Connection); !ok || !stopAt(m) {
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
