package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// site is a journey with two replicas of the API and a receiver.
type site struct {
	*mail
	replicas []*replica
	receiver *replica
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{mail: newMail(t)}
	database := config.Database{DatabaseURL: s.environment["DATABASE_URL"]}
	other := s.process("api", func(ctx context.Context, p app.Process) error {
		return app.RunAPI(ctx, config.API{
			Database: database, Log: config.Log{LogLevel: "info"}, Site: config.Site{APIAddr: "127.0.0.1:0"}, OpsAddr: "127.0.0.1:0",
		}, p)
	})
	s.replicas = []*replica{s.at(s.baseURL + "/v1"), s.at(other + "/v1")}
	s.receiver = s.at(s.process("receiver", func(ctx context.Context, p app.Process) error {
		return app.RunIngest(ctx, config.Ingest{
			Database: database, Queue: config.Queue{NATSURL: s.environment["NATS_URL"]}, Site: config.Site{APIAddr: "127.0.0.1:0"},
			Stream: config.Stream{StreamReplicas: 1, StreamMaxBytes: "1GiB", StreamKeep: "7d"},
			Log:    config.Log{LogLevel: "info"}, IngestAddr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", NoWorker: true,
		}, p)
	}))
	return s
}

// at is where a listener is asked.
func (s *site) at(url string) *replica {
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &replica{t: s.t, baseURL: url, client: &http.Client{Transport: transport}}
}

// everywhere holds every replica to a status and to what an answer says.
func (s *site) everywhere(path string, status int, says string) {
	s.t.Helper()
	for _, replica := range s.replicas {
		got := replica.get(path, s.key)
		require.Equal(s.t, status, got.status, got.body)
		require.Contains(s.t, got.body, says, path)
	}
}

// Right after a command, a PATCH or an upload was carried out, each replica
// answers with it, also to who has an older answer already.
func TestWhatWasDoneShowsOnEveryReplica(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43.1")
	s := newSite(t)
	s.key = s.id("key", "key", "create", "--team", s.team, "--scope", "read_write")
	s.everywhere("/team", 200, `"read_write"`)
	s.everywhere("/devices", 200, `{"data":[],`)
	device := s.device(s.team, "dev:1", "--name", "Hall")
	path := "/devices/" + device
	s.everywhere("/devices", 200, `"Hall"`)
	s.everywhere(path, 200, `"hardware_id":"dev:1"`)
	for i, name := range []string{"Gym", "Attic"} { // On one, seen on both.
		before := s.replicas[1-i].get(path, s.key)
		got := s.replicas[i].ask(http.MethodPatch, path, s.key, `{"display_name":"`+name+`"}`, "Content-Type: application/json")
		require.Equal(t, 200, got.status, got.body)
		s.everywhere(path, 200, name)
		s.everywhere("/devices", 200, name)
		after := s.replicas[1-i].ask(http.MethodGet, path, s.key, "", "If-None-Match: "+before.header.Get("ETag"))
		require.Equal(t, 200, after.status)
	}
	block := s.id("assignment_id", "assignment", "start", device, "--type", "place", "--label", "Room 12")
	s.everywhere(path, 200, `"label":"Room 12"`)
	s.everywhere(path+"/assignments", 200, `"ended_at":null`)
	s.do("assignment", "end", block)
	s.everywhere(path, 200, `"active_assignment":null`)
	s.everywhere(path+"/assignments", 200, `"ended_at":"`)
	s.do("device", "replace-hardware", device, "--hardware-id", "dev:2")
	s.everywhere(path, 200, `"hardware_id":"dev:2"`)
	s.uploadsShow(device)
}

// uploadsShow sends an upload of what the unit buffered while it sat in no
// device, which a replay brings there, and one of now.
func (s *site) uploadsShow(device string) {
	s.t.Helper()
	key := s.id("key", "ingest-key", "create", "--team", s.team)
	path := "/devices/" + device
	now := roomsensor.FormatTime(time.Now()) // Since the unit was installed.
	for i, text := range []string{
		`{"hardware_id":"dev:2","readings":[{"measured_at":"` + now + `","co2_ppm":611}]}`,
		`{"hardware_id":"dev:3","readings":[{"measured_at":"` + now + `","co2_ppm":622}]}`,
	} {
		got := s.receiver.ask(http.MethodPost, "/uploads", key, text)
		require.Equal(s.t, http.StatusAccepted, got.status, got.body)
		s.settled() // Stored, as the queue was told.
		if i == 0 {
			s.everywhere(path+"/readings", 200, `"co2_ppm":611`)
			s.everywhere("/readings.csv", 200, ",611,")
			s.everywhere(path, 200, `"status":"online"`)
		}
	}
	other := s.device(s.team, "dev:3")
	s.everywhere("/devices/"+other+"/readings", 200, `"data":[]`)
	require.Equal(s.t, "{\"replayed\":1}\n", s.operator.run("rejects", "replay", "--reason", "unknown_unit").out)
	s.everywhere("/devices/"+other+"/readings", 200, `"co2_ppm":622`)
	s.everywhere("/readings.csv?devices="+other, 200, ",622,")
}

// The live snapshot follows within a second of what was committed, and all that
// another tool writes by SQL shows within five.
func TestSnapshotAndSQLShowInTime(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43.2", "decision 43.3")
	s := newSite(t)
	device := s.device(s.team, "dev:1")
	s.everywhere("/devices/current", 200, `"latest":null`)
	s.everywhere("/team", 200, `"name":"Team"`)
	exec := func(sql string, args ...any) {
		_, err := s.conn.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT id, time_bucket('5 minutes', now()), 633 FROM devices`)
	exec(`UPDATE devices SET display_name = 'By SQL', rssi_dbm = -99`)
	exec(`UPDATE teams SET name = 'Renamed'`)
	<-time.After(time.Second)
	s.everywhere("/devices/current", 200, `"co2_ppm":633`)
	s.everywhere("/devices/current", 200, `"By SQL"`)
	s.everywhere("/devices/current", 200, `"co2_ppm":{"min":633,"max":633,"mean":633,"count":1}`)

	exec(`UPDATE api_keys SET revoked_at = now()`)
	<-time.After(5 * time.Second)
	s.everywhere("/team", 401, `"api_key_revoked"`)
	exec(`UPDATE api_keys SET revoked_at = NULL`)
	<-time.After(5 * time.Second)
	s.everywhere("/team", 200, `"Renamed"`)
	s.everywhere("/devices/"+device, 200, `"rssi_dbm":-99`)
	s.everywhere("/devices", 200, `"By SQL"`)
	s.everywhere("/devices/"+device+"/readings", 200, `"co2_ppm":633`)
	s.everywhere("/readings.csv", 200, "By SQL,633,")
}
