package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/natstest"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// installation is a team with one device, and the servers that it needs.
type installation struct {
	t        *testing.T
	database string
	nats     *natstest.Server
	team     uuid.UUID
	device   uuid.UUID
	key      string // that uploads
}

const unit = "dev:864475046552567"

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, database: dbtest.New(t).URL, nats: natstest.New(t)}
	o, err := app.OpenOperator(t.Context(), config.Database{DatabaseURL: i.database})
	require.NoError(t, err)
	defer o.Close()
	team, err := o.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	i.team = uuid.MustParse(team.ID)
	device, err := o.CreateDevice(t.Context(), app.DeviceOptions{TeamID: i.team, HardwareID: unit})
	require.NoError(t, err)
	i.device = uuid.MustParse(device.DeviceID)
	key, err := o.CreateIngestKey(t.Context(), i.team, nil)
	require.NoError(t, err)
	i.key = key.Key
	return i
}

func (i *installation) config() config.Ingest {
	return config.Ingest{
		Database: config.Database{DatabaseURL: i.database}, Queue: config.Queue{NATSURL: i.nats.URL},
		Stream: config.Stream{StreamReplicas: 1, StreamMaxBytes: "64MiB", StreamKeep: "7d"},
		Site:   config.Site{APIAddr: "127.0.0.1:8080", DocsURL: "https://docs.example/x"},
		Log:    config.Log{LogLevel: "info"}, IngestAddr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0",
	}
}

func startIngest(t *testing.T, cfg config.Ingest) *running {
	t.Helper()
	return start(t, func(ctx context.Context, p app.Process) error { return app.RunIngest(ctx, cfg, p) })
}

// upload posts readings of 5 minutes each, the first of them of a bucket.
func (i *installation) upload(receiver string, bucket, readings int) (status int, body string) {
	i.t.Helper()
	var text bytes.Buffer
	for n := range readings {
		at := time.Date(2026, time.January, 1, 0, 5*(bucket+n), 3, 0, time.UTC)
		fmt.Fprintf(&text, `{"hardware_id":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`+"\n",
			unit, roomsensor.FormatTime(at), 400+n)
	}
	request, err := http.NewRequestWithContext(i.t.Context(), http.MethodPost, receiver+"/uploads", &text)
	require.NoError(i.t, err)
	request.Header.Set("Authorization", "Bearer "+i.key)
	response, err := openapitest.Transport(&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(i.t, err)
	defer func() { require.NoError(i.t, response.Body.Close()) }()
	said, err := io.ReadAll(response.Body)
	require.NoError(i.t, err)
	return response.StatusCode, string(said)
}

// stored is how many readings the tables hold.
func (i *installation) stored() (readings int) {
	i.t.Helper()
	s, err := store.Open(i.t.Context(), i.database, store.API)
	require.NoError(i.t, err)
	defer s.Close()
	err = s.EachReading(i.t.Context(), i.team, i.device, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: time.Unix(0, 0), To: roomsensor.Forever}, Limit: roomsensor.MaxPage,
	}, func(*roomsensor.Reading) { readings++ })
	require.NoError(i.t, err)
	return readings
}

func (i *installation) awaitStored(n int) {
	i.t.Helper()
	require.Eventually(i.t, func() bool { return i.stored() == n }, patience, 20*time.Millisecond)
}

// awaitReadiness waits until /readyz has a status and says something.
func awaitReadiness(t *testing.T, ops string, status int, says string, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, body := get(t, ops+"/readyz")
		return got == status && strings.Contains(body, says)
	}, within, 50*time.Millisecond)
}

func TestIngestReceivesAndStores(t *testing.T) {
	t.Parallel()
	i := install(t)
	r := startIngest(t, i.config())
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	status, body := i.upload(receiver, 0, 3)
	require.Equal(t, 202, status, body)
	require.JSONEq(t, `{"stored":3}`, body)
	i.awaitStored(3)

	status, body = get(t, receiver+"/uploads")
	require.Equal(t, 405, status)
	require.Contains(t, body, `"doc_url":"https://docs.example/x/errors/method_not_allowed"`)
	_, body = get(t, ops+"/metrics")
	require.Contains(t, body, "roomsensor_ingest_uploads_total 3")
	require.Contains(t, body, "roomsensor_queue_stream_max_bytes 6.7108864e+07")

	require.NoError(t, r.end())
	require.Contains(t, r.log.String(), `"edition":"`+dbtest.Edition(t)+`"`)
	require.NotContains(t, r.log.String(), `"level":"warn"`)
	require.NotContains(t, r.log.String(), i.key)
}

func TestReceiverNeedsTheQueueAlone(t *testing.T) {
	t.Parallel()
	i := install(t)
	database, queue := newLine(t, i.database), newLine(t, i.nats.URL)
	cfg := i.config()
	cfg.DatabaseURL, cfg.NATSURL, cfg.NoWorker = database.URL, queue.URL, true
	r := startIngest(t, cfg)
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	status, body := i.upload(receiver, 0, 1) // Its key is known from now on.
	require.Equal(t, 202, status, body)

	database.Cut()
	status, body = i.upload(receiver, 1, 1)
	require.Equal(t, 202, status, body)
	require.Zero(t, i.stored(), "a receiver stores nothing")

	queue.Cut()
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"does not answer"`, 20*time.Second)
	status, body = i.upload(receiver, 2, 1)
	require.Equal(t, 503, status)
	require.Contains(t, body, "overloaded")
	_, body = get(t, ops+"/readyz")
	require.NotContains(t, body, "database")

	queue.Mend()
	awaitReadiness(t, ops, 200, "ready", patience)
	status, body = i.upload(receiver, 2, 1)
	require.Equal(t, 202, status, body)
	require.NoError(t, r.end())
}

func TestWorkerNeedsQueueAndDatabase(t *testing.T) {
	t.Parallel()
	i := install(t)
	receiver := startIngest(t, withoutWorker(i.config()))
	receiver.address("ops")
	uploads := receiver.address("receiver")
	receiver.awaitReady()

	database := newLine(t, i.database)
	cfg := i.config()
	cfg.DatabaseURL, cfg.NoReceiver = database.URL, true
	r := startIngest(t, cfg)
	ops := r.address("ops")
	r.awaitReady()
	status, body := i.upload(uploads, 0, 10)
	require.Equal(t, 202, status, body)
	i.awaitStored(10)

	database.Cut()
	status, body = i.upload(uploads, 10, 10)
	require.Equal(t, 202, status, body)
	awaitReadiness(t, ops, 503, `"name":"database","reason":"does not answer"`, 20*time.Second)
	database.Mend()
	awaitReadiness(t, ops, 200, "ready", patience)
	i.awaitStored(20)
	require.Empty(t, r.bound, "a worker has no public listener")
	require.NoError(t, r.end())
	require.NoError(t, receiver.end())
}

func withoutWorker(cfg config.Ingest) config.Ingest {
	cfg.NoWorker = true
	return cfg
}

func TestIngestWaitsForItsServers(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.nats.Shutdown()
	r := startIngest(t, i.config())
	ops, receiver := r.address("ops"), r.address("receiver")
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"does not answer"`, patience)
	status, _ := i.upload(receiver, 0, 1)
	require.Equal(t, 503, status, "it answers from the first moment")

	i.nats.Restart(t)
	r.awaitReady()
	status, body := i.upload(receiver, 0, 1)
	require.Equal(t, 202, status, body)
	i.awaitStored(1)
	require.NoError(t, r.end())
}

// What was acknowledged to the sender is in the tables in the end, however
// often the process is told to end while it works.
func TestAStopLosesNothing(t *testing.T) {
	t.Parallel()
	i := install(t)
	const rounds, each = 4, 100
	for round := range rounds {
		r := startIngest(t, i.config())
		r.address("ops")
		receiver := r.address("receiver")
		require.Eventually(t, func() bool {
			status, _ := i.upload(receiver, round*each, each)
			return status == 202
		}, patience, 20*time.Millisecond)
		require.NoError(t, r.end())
	}
	r := startIngest(t, i.config())
	i.awaitStored(rounds * each)
	require.NoError(t, r.end())
}

func TestIngestEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	cfg := (&installation{database: "postgres://user:secret@127.0.0.1:1/x", nats: &natstest.Server{URL: "nats://user:secret@127.0.0.1:1"}}).config()
	r := startIngest(t, cfg)
	r.address("ops")
	r.address("receiver")
	require.NoError(t, r.end())
	require.NotContains(t, r.log.String(), "secret")
}

func TestIngestRefusesABadStart(t *testing.T) {
	t.Parallel()
	i := &installation{database: "postgres://127.0.0.1:1/x", nats: &natstest.Server{URL: "nats://127.0.0.1:1"}}
	var problem *config.ValueError
	bad := i.config()
	bad.NATSURL = "queue"
	require.ErrorAs(t, app.RunIngest(t.Context(), bad, app.Process{}), &problem)
	require.Equal(t, "nats-url", problem.Flag)

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, name := range []string{"ops", "receiver"} {
		inUse := i.config()
		if name == "ops" {
			inUse.OpsAddr = taken.Addr().String()
		} else {
			inUse.IngestAddr = taken.Addr().String()
		}
		require.ErrorContains(t, app.RunIngest(t.Context(), inUse, app.Process{}), "for "+name+":")
	}
}
