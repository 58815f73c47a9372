package service_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// hardwareEnv is a worker and an API that run for the whole test, and an operator.
type hardwareEnv struct {
	*testEnv
	operator *admin.Operator
	queue    *queue.Queue
	js       jetstream.JetStream
	api      string
	units    int // used so far
}

func newHardwareEnv(t *testing.T) *hardwareEnv {
	t.Helper()
	e := &hardwareEnv{testEnv: newTestEnv(t)}
	cfg := e.config()
	cfg.NoReceiver = true
	worker := startIngest(t, cfg)
	api := startAPI(t, apiConfig(e.database))
	api.address("ops")
	e.api = api.address("api")
	worker.awaitReady()
	api.awaitReady()
	nc, err := queue.Connect(e.nats.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	e.queue, err = queue.New(nc, queue.Config{Replicas: 1, MaxBytes: 64 << 20})
	require.NoError(t, err)
	e.js, err = jetstream.New(nc)
	require.NoError(t, err)
	e.operator, err = admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	t.Cleanup(func() {
		e.operator.Close()
		nc.Close()
		require.NoError(t, api.end())
		require.NoError(t, worker.end())
	})
	return e
}

// fixture is two teams with their devices and units, after a history.
type fixture struct {
	*hardwareEnv
	teams   [2]uuid.UUID
	keys    [2]string
	devices [deviceCount]uuid.UUID
	units   [unitCount]string
	since   time.Time
}

// apply creates teams, devices and units and carries out a history with the operator's use cases.
func (e *hardwareEnv) apply(t require.TestingT, h *history) *fixture {
	ctx := e.t.Context()
	f := &fixture{hardwareEnv: e, since: time.Now().UTC().Truncate(time.Microsecond)}
	for i := range f.units {
		e.units++
		f.units[i] = fmt.Sprint("dev:", e.units)
	}
	for i := range f.teams {
		team, err := e.operator.CreateTeam(ctx, "Team")
		require.NoError(t, err)
		f.teams[i] = uuid.MustParse(team.ID)
		key, err := e.operator.CreateAPIKey(ctx, admin.KeyOptions{TeamID: f.teams[i], Scope: roomsensor.ScopeRead})
		require.NoError(t, err)
		f.keys[i] = key.Key
	}
	for i := range f.devices {
		made, err := e.operator.CreateDevice(ctx, admin.DeviceOptions{TeamID: f.teams[teamOf(i)], HardwareID: f.units[i]})
		require.NoError(t, err)
		f.devices[i] = uuid.MustParse(made.DeviceID)
	}
	for _, next := range h.steps {
		var err error
		if next.unit < 0 {
			_, err = e.operator.RemoveHardware(ctx, f.devices[next.device], &next.at)
		} else {
			_, err = e.operator.ReplaceHardware(ctx, f.devices[next.device], f.units[next.unit], &next.at)
		}
		require.NoError(t, err)
	}
	return f
}

// publish publishes uploads, waits until the worker has acknowledged them, and returns the sequence of the first one.
func (f *fixture) publish(t require.TestingT, uploads []lateUpload) (first uint64) {
	var last uint64
	for _, b := range uploads {
		message := queue.Message{HardwareID: f.units[b.unit], Text: []byte(b.text(f.units[b.unit]))}
		if b.team >= 0 {
			message.Team = &f.teams[b.team]
		}
		sequences, err := f.queue.Publish(f.t.Context(), []queue.Message{message})
		require.NoError(t, err)
		last = sequences[0]
	}
	require.Eventually(t, func() bool {
		consumer, err := f.js.Consumer(f.t.Context(), queue.StreamName, queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream == last
	}, waitTimeout, 5*time.Millisecond)
	return last - uint64(len(uploads)) + 1
}

// served returns the readings of a device from the API: CO2 by bucket.
func (f *fixture) served(t require.TestingT, device int) map[string]int {
	url := f.api + "/v1/devices/" + f.devices[device].String() + "/readings?from=2026-03-03T00:00:00Z&to=2026-03-05T00:00:00Z"
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+f.keys[teamOf(device)])
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

// rejected counts the readings in the rejects of the uploads, by upload and reason. first is the sequence of the first
// upload.
func (f *fixture) rejected(t require.TestingT, first uint64) map[string]int {
	rejects, err := f.operator.Rejects(f.t.Context(), roomsensor.RejectQuery{Since: &f.since, Limit: 1000})
	require.NoError(t, err)
	counts := map[string]int{}
	for _, r := range rejects.Data {
		if r.StreamSequence < first {
			continue
		}
		whole, err := f.operator.Reject(f.t.Context(), uuid.MustParse(r.ID))
		require.NoError(t, err)
		var kept struct {
			Readings []json.RawMessage `json:"readings"`
		}
		require.NoError(t, json.Unmarshal([]byte(*whole.Payload), &kept))
		counts[fmt.Sprint(r.StreamSequence-first, " ", r.Reason)] = len(kept.Readings)
	}
	return counts
}

// TestReadingsFollowUnit moves units between devices and teams and publishes their uploads afterwards. It checks that
// the API serves each reading with the device that contained its unit when it was measured, that an upload that spans a
// move is split, and that readings that belong to no device are rejected (decision 40).
func TestReadingsFollowUnit(t *testing.T) {
	t.Parallel()
	e := newHardwareEnv(t)
	type scenario struct {
		history history
		uploads []lateUpload
	}
	generator := rapid.Custom(func(rt *rapid.T) scenario {
		h := drawHistory(rt)
		return scenario{h, drawUploads(rt, &h)}
	})
	// The tests of package worker cover many histories. These few also cover the queue, the operator and the API.
	for seed := range 8 {
		s := generator.Example(seed)
		f := e.apply(t, &s.history)
		first := f.publish(t, s.uploads)
		want := s.history.expect(s.uploads)
		for device := range deviceCount {
			require.Equal(t, want.served[device], f.served(t, device), "seed %d, device %d", seed, device)
		}
		require.Equal(t, want.rejects, f.rejected(t, first), "seed %d", seed)
	}
}

// step is a change of hardware: a unit was installed in a device, or, for unit -1, the unit of the device was removed.
type step struct {
	at           time.Time
	device, unit int
}

// history is a sequence of steps, oldest first. Before it, each device contains the unit with its own number.
type history struct {
	steps []step
}

const (
	deviceCount = 3 // 0 and 1 of the first team, 2 of the second
	unitCount   = 4 // the last of which is in no device at first
)

func teamOf(device int) int { return device / 2 }

// began is when a history starts, between two bucket boundaries.
var began = time.Date(2026, time.March, 3, 10, 2, 13, 0, time.UTC)

// drawHistory draws steps in which each unit is in at most one device at a time.
func drawHistory(t *rapid.T) history {
	var h history
	at := began
	for range rapid.IntRange(4, 10).Draw(t, "steps") {
		interval := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 4 * time.Minute, time.Hour})
		at = at.Add(interval.Draw(t, "interval"))
		next := step{at: at, device: rapid.IntRange(0, deviceCount-1).Draw(t, "device"), unit: -1}
		units := h.installed(at)
		if units[next.device] < 0 || rapid.Bool().Draw(t, "install") {
			free := slices.DeleteFunc([]int{0, 1, 2, 3}, func(u int) bool { return slices.Contains(units[:], u) })
			if len(free) == 0 {
				continue
			}
			next.unit = rapid.SampledFrom(free).Draw(t, "unit")
		}
		h.steps = append(h.steps, next)
	}
	return h
}

// installed returns the unit in each device at a time; -1 for none.
func (h *history) installed(at time.Time) (units [deviceCount]int) {
	for device := range units {
		units[device] = device
	}
	for _, s := range h.steps {
		if !s.at.After(at) {
			units[s.device] = s.unit
		}
	}
	return units
}

// hosts returns the devices that ever contained a unit.
func (h *history) hosts(unit int) map[int]bool {
	devices := map[int]bool{}
	if unit < deviceCount {
		devices[unit] = true
	}
	for _, s := range h.steps {
		if s.unit == unit {
			devices[s.device] = true
		}
	}
	return devices
}

// lateUpload is one upload after all steps.
type lateUpload struct {
	unit     int
	team     int // of the ingest key; -1 for a trusted publisher
	readings []reading
}

type reading struct {
	at  time.Time
	co2 int
}

// drawUploads draws uploads of readings around the steps. The value follows from the unit and the time.
func drawUploads(t *rapid.T, h *history) (list []lateUpload) {
	instants := []time.Time{began}
	for _, s := range h.steps {
		instants = append(instants, s.at.Add(-time.Microsecond), s.at, s.at.Add(time.Microsecond), s.at.Add(3*time.Minute))
	}
	slices.SortFunc(instants, time.Time.Compare)
	instants = slices.Compact(instants)
	for range rapid.IntRange(4, 8).Draw(t, "uploads") {
		b := lateUpload{
			unit: rapid.IntRange(0, unitCount-1).Draw(t, "unit"),
			team: rapid.SampledFrom([]int{-1, -1, 0, 1}).Draw(t, "team"),
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, len(instants)-1), 3, 12).Draw(t, "measured") {
			b.readings = append(b.readings, reading{instants[n], 1 + 100*b.unit + n})
		}
		list = append(list, b)
	}
	return list
}

func (b *lateUpload) text(unit string) string {
	var readings []string
	for _, r := range b.readings {
		readings = append(readings, fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d}`, roomsensor.FormatTime(r.at), r.co2))
	}
	return fmt.Sprintf(`{"hardware_id":%q,"readings":[%s]}`, unit, strings.Join(readings, ","))
}

// outcome is what the API must serve and what must be rejected.
type outcome struct {
	served  [deviceCount]map[string]int // CO2 by bucket
	rejects map[string]int              // readings by upload and reason
}

// expect is the model of unit resolution (decision 40). It replays the whole history for each reading.
func (h *history) expect(uploads []lateUpload) outcome {
	o := outcome{rejects: map[string]int{}}
	newest := [deviceCount]map[string]time.Time{}
	for device := range deviceCount {
		o.served[device], newest[device] = map[string]int{}, map[string]time.Time{}
	}
	for n, b := range uploads {
		visible := maps.Clone(h.hosts(b.unit))
		maps.DeleteFunc(visible, func(device int, _ bool) bool { return b.team >= 0 && teamOf(device) != b.team })
		for _, r := range b.readings {
			units := h.installed(r.at)
			device := slices.Index(units[:], b.unit)
			bucket := roomsensor.FormatTime(roomsensor.BucketOf(r.at))
			switch {
			case len(visible) == 0:
				o.rejects[fmt.Sprint(n, " unknown_unit")]++
			case device < 0 || !visible[device]:
				o.rejects[fmt.Sprint(n, " not_installed")]++
			case !r.at.Before(newest[device][bucket]):
				o.served[device][bucket], newest[device][bucket] = r.co2, r.at
			}
		}
	}
	return o
}
