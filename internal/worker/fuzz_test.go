package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/roomsensor"
)

// keyStore has one upload credential, which the receiver looks up. Its list is never read, because it does not run.
type keyStore struct {
	httpedge.KeyTable
	key roomsensor.Key
}

func (s keyStore) IngestKeysByID(context.Context, []string) ([]roomsensor.Key, error) {
	return []roomsensor.Key{s.key}, nil
}

// newReceiver returns a receiver of uploads for a team, and its credential.
func (e *env) newReceiver(team uuid.UUID, db receiver.Database) (r *receiver.Receiver, key string) {
	id, key, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	return receiver.New(receiver.Config{
		Queue: e.queue, Database: db, Keys: keyStore{key: roomsensor.Key{ID: id, TeamID: team, SecretSHA256: sum}}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
		RequestsPerSecond: 1_000_000,
	}), key
}

// FuzzUpload posts bodies to a receiver with a real queue and stores what it accepts in real tables: the database
// refuses none of it, and the worker rejects what a dry run reported (A8.1).
func FuzzUpload(f *testing.F) {
	const (
		small  = `{"hardware_id":"dev:1","readings":[]}`
		second = `{"hardware_id":"dev:2","readings":[{"measured_at":"for the worker"}]}`
	)
	e, db := newEnv(f), newDatabase(f)
	r, key := e.newReceiver(db.ours, db.Store)
	unit := db.first
	for _, body := range []string{
		small, small + "\r\n\n" + second, "{\n\"hardware_id\":\"dev:1\",\n\"readings\":[]}\n{", `{"readings":[{"a":1,"a":2}],"hardware_id":"dev:1"}`,
		`{"hardware_id":"dev:1","sent_at":"x","firmware_version":"\u0000","signal":{"rssi_dbm":-9999999999,"bars":1e9},"readings":[{"measured_at":"2026-11-20T09:55:03.9999999Z","co2_ppm":1e400,"temp_c":-0.0,"lux":1e-60,"spl_db":"x\u0000"}]}`,
		`{"hardware\u005fid":"dev:1","readings":[null,[{}],{"measured_at":"2026-11-20T09:55:03Z"},{"measured_at":"2026-11-20T09:59:59Z","co2_ppm":3.4028236e38}]}`,
		`{"hardware_id":"dev:1","readings":[{"measured_at":"2026-11-20T09:55:03Z","co2":1},{"measured_at":"2014-11-20T09:55:03Z"},7,{"measured_at":"2026-11-20T09:55:03Z","lux":-1}],"signal":7}` +
			"\n" + `{"hardware_id":"dev:404","readings":[{"measured_at":"2026-11-20T09:55:03Z","lux":1},{}]}`,
		`{"hardware_id":"dev:00000000000000000001","readings":[],"x":"` + strings.Repeat("é", 300) + `"}`, "\ufeff" + small, "\xff",
	} {
		f.Add([]byte(strings.ReplaceAll(body, "dev:1", unit)))
	}
	writer := db.writer()
	f.Fuzz(func(t *testing.T, body []byte) {
		post := func(path string) *httptest.ResponseRecorder {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
			request.Header.Set("Authorization", "Bearer "+key)
			w := httptest.NewRecorder()
			r.ServeHTTP(w, request)
			return w
		}
		dryRun, w := post("/uploads?dry_run=true"), post("/uploads")
		require.Equal(t, w.Code == http.StatusAccepted, dryRun.Code == http.StatusOK)
		deliveries := e.takeAll(t)
		require.Equal(t, w.Code == http.StatusAccepted, len(deliveries) > 0)
		results, err := writer.write(t.Context(), deliveries)
		require.NoError(t, err)
		require.NotContains(t, stored(results), false)
		var rejected []reported
		for i := range results {
			for _, reject := range results[i].rejects {
				require.NotEqual(t, roomsensor.ReasonNotStorable, reject.Reason, reject.Detail)
				rejected = append(rejected, reported{i + 1, reject.Reason, reject.Detail})
			}
		}
		var report struct {
			Rejects []reported `json:"rejects"`
		}
		if dryRun.Code == http.StatusOK {
			require.NoError(t, json.Unmarshal(dryRun.Body.Bytes(), &report))
			require.Equal(t, append([]reported{}, rejected[:min(len(rejected), 1000)]...), report.Rejects)
		}
	})
}

// reported is a reject of an upload, by its number in the request.
type reported struct {
	Line   int               `json:"line"`
	Reason roomsensor.Reason `json:"reason"`
	Detail string            `json:"detail"`
}

// takeAll purges the stream and returns what it held.
func (e *env) takeAll(t *testing.T) (list []*delivery) {
	t.Helper()
	stream, err := e.js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	state := stream.CachedInfo().State
	for sequence := state.FirstSeq; state.Msgs > 0 && sequence <= state.LastSeq; sequence++ {
		msg, err := stream.GetMsg(t.Context(), sequence)
		require.NoError(t, err)
		name, unit, _ := strings.Cut(strings.TrimPrefix(msg.Subject, "uploads."), ".")
		team, err := uuid.Parse(name)
		require.NoError(t, err)
		if unit == "-" {
			unit = ""
		}
		list = append(list, parsed(roomsensor.Arrival{At: msg.Time.UTC().Truncate(time.Microsecond), Sequence: sequence, Team: &team},
			unit, msg.Data))
	}
	require.NoError(t, stream.Purge(t.Context()))
	return list
}
