package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// workshop is a worker and an API that run for all of a test, and what an operator does beside them.
type workshop struct {
	*installation
	operator *app.Operator
	queue    *queue.Queue
	js       jetstream.JetStream
	api      string
	units    int // used so far
}

func openWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{installation: install(t)}
	cfg := w.config()
	cfg.NoReceiver = true
	worker := startIngest(t, cfg)
	api := startAPI(t, apiConfig(w.database))
	api.address("ops")
	w.api = api.address("api")
	worker.awaitReady()
	api.awaitReady()
	nc, err := queue.Connect(w.nats.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	w.queue, err = queue.New(nc, queue.Config{Replicas: 1, MaxBytes: 64 << 20})
	require.NoError(t, err)
	w.js, err = jetstream.New(nc)
	require.NoError(t, err)
	w.operator, err = app.OpenOperator(t.Context(), config.Database{DatabaseURL: w.database})
	require.NoError(t, err)
	t.Cleanup(func() {
		w.operator.Close()
		nc.Close()
		require.NoError(t, api.end())
		require.NoError(t, worker.end())
	})
	return w
}

// scene is two teams, their devices and units, after a history.
type scene struct {
	*workshop
	teams   [2]uuid.UUID
	keys    [2]string
	devices [deviceCount]uuid.UUID
	units   [unitCount]string
	since   time.Time
}

// enact has an operator do what happened.
func (w *workshop) enact(t require.TestingT, h *history) *scene {
	ctx := w.t.Context()
	s := &scene{workshop: w, since: time.Now().UTC().Truncate(time.Microsecond)}
	for i := range s.units {
		w.units++
		s.units[i] = fmt.Sprint("dev:", w.units)
	}
	for i := range s.teams {
		team, err := w.operator.CreateTeam(ctx, "Team")
		require.NoError(t, err)
		s.teams[i] = uuid.MustParse(team.ID)
		key, err := w.operator.CreateAPIKey(ctx, app.KeyOptions{TeamID: s.teams[i], Scope: roomsensor.ScopeRead})
		require.NoError(t, err)
		s.keys[i] = key.Key
	}
	for i := range s.devices {
		made, err := w.operator.CreateDevice(ctx, app.DeviceOptions{TeamID: s.teams[teamOf(i)], HardwareID: s.units[i]})
		require.NoError(t, err)
		s.devices[i] = uuid.MustParse(made.DeviceID)
	}
	for _, next := range h.steps {
		var err error
		if next.unit < 0 {
			_, err = w.operator.RemoveHardware(ctx, s.devices[next.device], &next.at)
		} else {
			_, err = w.operator.ReplaceHardware(ctx, s.devices[next.device], s.units[next.unit], &next.at)
		}
		require.NoError(t, err)
	}
	return s
}

// deliver puts uploads into the queue, waits until the worker has settled them, and returns the sequence of the first.
func (s *scene) deliver(t require.TestingT, bursts []burst) (first uint64) {
	var last uint64
	for _, b := range bursts {
		message := queue.Message{HardwareID: s.units[b.unit], Text: []byte(b.text(s.units[b.unit]))}
		if b.team >= 0 {
			message.Team = &s.teams[b.team]
		}
		sequences, err := s.queue.Publish(s.t.Context(), []queue.Message{message})
		require.NoError(t, err)
		last = sequences[0]
	}
	require.Eventually(t, func() bool {
		consumer, err := s.js.Consumer(s.t.Context(), queue.StreamName, queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream == last
	}, patience, 5*time.Millisecond)
	return last - uint64(len(bursts)) + 1
}

// served is what the API says of a device: CO2 by bucket.
func (s *scene) served(t require.TestingT, device int) map[string]int {
	url := s.api + "/v1/devices/" + s.devices[device].String() + "/readings?from=2026-03-03T00:00:00Z&to=2026-03-05T00:00:00Z"
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.keys[teamOf(device)])
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var page struct {
		Data []struct {
			BucketAt string `json:"bucket_at"`
			CO2      int    `json:"co2_ppm"`
		} `json:"data"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&page))
	list := map[string]int{}
	for _, row := range page.Data {
		list[row.BucketAt] = row.CO2
	}
	return list
}

// rejected counts the readings in the rejects of the uploads, by upload and reason; first is the first one's sequence.
func (s *scene) rejected(t require.TestingT, first uint64) map[string]int {
	rejects, err := s.operator.Rejects(s.t.Context(), roomsensor.RejectQuery{Since: &s.since, Limit: 1000})
	require.NoError(t, err)
	counts := map[string]int{}
	for _, r := range rejects.Data {
		if r.StreamSequence < first {
			continue
		}
		whole, err := s.operator.Reject(s.t.Context(), uuid.MustParse(r.ID))
		require.NoError(t, err)
		var kept struct {
			Readings []json.RawMessage `json:"readings"`
		}
		require.NoError(t, json.Unmarshal([]byte(*whole.Payload), &kept))
		counts[fmt.Sprint(r.StreamSequence-first, " ", r.Reason)] = len(kept.Readings)
	}
	return counts
}

// Units move between devices and teams, and bursts come after that: each reading is served of the device in which its
// unit sat when it was measured, a burst that spans a move is split, and what belongs nowhere is a reject.
func TestReadingsFollowTheUnit(t *testing.T) {
	t.Parallel()
	w := openWorkshop(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt)
		bursts := drawBursts(rt, &h)
		s := w.enact(rt, &h)
		first := s.deliver(rt, bursts)
		want := h.expect(bursts)
		for device := range deviceCount {
			require.Equal(rt, want.served[device], s.served(rt, device), "device %d", device)
		}
		require.Equal(rt, want.rejects, s.rejected(rt, first))
	})
}
