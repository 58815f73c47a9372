package workload

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/env"
	"roomsensor/bench/load"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

const (
	// teamsHistory is the age of the first readings of the teams, and uploadsSince when they end: the uploads of
	// W11 are newer.
	teamsHistory, uploadsSince = 24 * time.Hour, 6 * time.Hour
	// teamsStep is the time between two readings in the history of a device.
	teamsStep = time.Hour
)

// teams are the teams of a workload, with processes of their own.
type teams struct {
	*env.Teams
	api      *harness.Process
	queue    *env.Queue
	worker   *harness.Process
	receiver *harness.Process

	numbers map[uuid.UUID]int // of the devices
	since   time.Time         // bucket of the first uploads, after the history
	sent    atomic.Int64      // uploads of one reading so far: device by device, bucket by bucket
	asked   atomic.Int64      // requests to the API so far: team by team
	idle    time.Time         // end of the last request to the API
}

// openTeams registers the teams of W11 to W13, loads their history and starts their processes.
func (s *Suite) openTeams(ctx context.Context) (err error) {
	t, err := s.newTeams(ctx, s.Teams, s.TeamDevices)
	if err != nil {
		return err
	}
	t.since = t.Fleet.Until.Add(-uploadsSince)
	for i := range t.Fleet.Devices {
		t.numbers[t.Fleet.DeviceID(i)] = i
	}
	history := roomsensor.Window{From: t.Fleet.Until.Add(-teamsHistory), To: t.since}
	if err := t.Load(ctx, history, teamsStep); err != nil {
		return err
	}
	if err := t.startIngest(ctx, "teams"); err != nil {
		return err
	}
	s.teams = t
	return t.restartAPI(ctx)
}

// restartAPI starts an API process, after it ended the one before.
func (t *teams) restartAPI(ctx context.Context) (err error) {
	if err := stopAll(&t.api); err != nil {
		return err
	}
	t.api, err = t.Start(ctx, "api-teams", nil, "api")
	return err
}

// newTeams registers teams without readings. The processes of the fleet end, because no later workload needs them.
func (s *Suite) newTeams(ctx context.Context, number, devices int) (*teams, error) {
	if err := stopAll(&s.api, &s.worker, &s.receiver); err != nil {
		return nil, err
	}
	f := s.Fleet
	f.Until = roomsensor.BucketOf(time.Now().UTC())
	registered, err := s.OpenTeams(ctx, number, devices, &f)
	return &teams{Teams: registered, numbers: map[uuid.UUID]int{}}, err
}

// startIngest installs the units and starts a NATS server, a worker and a receiver.
func (t *teams) startIngest(ctx context.Context, name string) (err error) {
	if err := t.InstallUnits(ctx); err != nil {
		return err
	}
	if t.queue, err = t.OpenQueue(ctx, "nats-"+name); err != nil {
		return err
	}
	if t.worker, err = t.Start(ctx, "worker-"+name, t.queue, "ingest", "--no-receiver"); err != nil {
		return err
	}
	t.receiver, err = t.Start(ctx, "receiver-"+name, t.queue, "ingest", "--no-worker")
	return err
}

// stop ends the processes of roomsensor.
func (t *teams) stop() error { return stopAll(&t.api, &t.worker, &t.receiver) }

// stopAll ends processes that run.
func stopAll(services ...**harness.Process) error {
	for _, service := range services {
		if *service == nil {
			continue
		}
		if err := (*service).End(); err != nil {
			return err
		}
		*service = nil
	}
	return nil
}

// closeTeams ends the processes of W11 to W13.
func (s *Suite) closeTeams(context.Context) error { return s.teams.stop() }

// bucket returns the bucket of the n-th upload, and its device.
func (t *teams) bucket(n int) (at time.Time, device int) {
	return t.since.Add(time.Duration(n/t.Fleet.Devices) * roomsensor.BucketLength), n % t.Fleet.Devices
}

// uploader returns a function that sends the next upload of one reading and returns its number. All functions may run
// at the same time.
func (t *teams) uploader(client *load.Client) func(context.Context) (n int, err error) {
	return func(ctx context.Context) (int, error) {
		n := int(t.sent.Add(1)) - 1
		at, device := t.bucket(n)
		if !at.Before(t.Fleet.Until) {
			return n, fmt.Errorf("all %d devices have sent all readings of %s: -teams must be larger",
				t.Fleet.Devices, uploadsSince)
		}
		return n, t.post(ctx, client, device, roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)})
	}
}

// post sends an upload of a device with its readings of a window.
func (t *teams) post(ctx context.Context, client *load.Client, device int, w roomsensor.Window) error {
	sender := Sender{
		Client: client, URL: t.receiver.URL() + "/uploads", Bearer: "Bearer " + t.IngestKeys[t.Team(device)],
		Status: http.StatusAccepted,
	}
	return sender.Post(ctx, t.Fleet.Upload(device, w))
}

// get requests a path under /v1 for the next team. A body of fewer bytes is an error.
func (t *teams) get(ctx context.Context, client *load.Client, path string, least int) error {
	team := int(t.asked.Add(1)-1) % t.Number
	request, err := t.request(ctx, team, path)
	if err != nil {
		return err
	}
	answer, err := client.Do(request, http.StatusOK)
	if err == nil && answer.Bytes < int64(least) {
		return fmt.Errorf("%w: %d bytes", errBody, answer.Bytes)
	}
	return err
}

func (t *teams) request(ctx context.Context, team int, path string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.api.URL()+"/v1"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+t.APIKeys[team])
	return request, nil
}
