package service_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
	"roomsensor/test/openapitest"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// waitTimeout bounds every wait of a test. With the race detector and a browser beside it, a start took over a minute.
const waitTimeout = 3 * time.Minute

// runningProcess is a process inside the test.
type runningProcess struct {
	t     *testing.T
	log   *proctest.Output
	bound chan string // the names and addresses of its listeners, in the order in which they were opened
	ready chan struct{}
	stop  context.CancelFunc
	ended chan error
}

// start runs a process, which ends with the test at the latest.
func start(t *testing.T, run func(context.Context, process.Options) error) *runningProcess {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &runningProcess{
		t: t, log: &proctest.Output{}, stop: stop,
		bound: make(chan string, 4), ready: make(chan struct{}), ended: make(chan error, 1),
	}
	p := process.Options{
		Log: zerolog.New(r.log), Version: "test",
		Started: func(name string, bound net.Addr) { r.bound <- name + " " + bound.String() },
		Ready:   func() { close(r.ready) },
	}
	var running sync.WaitGroup
	running.Go(func() { r.ended <- run(ctx, p) })
	t.Cleanup(running.Wait) // The servers that the process uses stop after it.
	t.Cleanup(stop)
	return r
}

// address waits for the next listener, which must have this name, and returns its URL.
func (r *runningProcess) address(name string) string {
	r.t.Helper()
	select {
	case bound := <-r.bound:
		require.Contains(r.t, bound, name+" ")
		return "http://" + bound[len(name)+1:]
	case err := <-r.ended:
		require.FailNow(r.t, "the process ended", "%v\n%s", err, r.log)
	case <-time.After(waitTimeout):
		require.FailNow(r.t, "nothing listens", r.log.String())
	}
	return ""
}

func (r *runningProcess) awaitReady() {
	r.t.Helper()
	select {
	case <-r.ready:
	case err := <-r.ended:
		require.FailNow(r.t, "the process ended", "%v\n%s", err, r.log)
	case <-time.After(waitTimeout):
		require.FailNow(r.t, "the process is not ready", r.log.String())
	}
}

// awaitDatabase waits until the process has logged the edition of the database, which it may do after it is ready.
func (r *runningProcess) awaitDatabase() {
	r.t.Helper()
	edition := `"edition":"` + dbtest.Edition(r.t) + `"`
	require.Eventually(r.t, func() bool { return strings.Contains(r.log.String(), edition) }, waitTimeout, 20*time.Millisecond)
}

// end stops the process and returns its error.
func (r *runningProcess) end() error {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(waitTimeout):
		require.FailNow(r.t, "the process does not end", r.log.String())
		return nil
	}
}

// warnings returns the warnings in the log. It leaves out those that a busy machine causes: a dependency or a request
// that took longer than its timeout.
func (r *runningProcess) warnings() []string {
	var found []string
	for line := range strings.Lines(r.log.String()) {
		late := slices.ContainsFunc([]string{`"message":"dependency unavailable"`, "deadline exceeded", "i/o timeout"},
			func(cause string) bool { return strings.Contains(line, cause) })
		if strings.Contains(line, `"level":"warn"`) && !late {
			found = append(found, line)
		}
	}
	return found
}

// newProxy returns a proxy to a server, with which the test can cut the connection.
func newProxy(t *testing.T, server string) *proctest.Proxy {
	t.Helper()
	p, err := proctest.NewProxy(t.Context(), server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// send sends a request without a body.
func send(t *testing.T, method, url string, headers ...string) (response *http.Response, body string) {
	t.Helper()
	return sendBody(t, method, url, nil, headers...)
}

// sendBody sends a request with pairs of header names and values, and checks the response against the OpenAPI document.
func sendBody(t *testing.T, method, url string, content io.Reader, headers ...string) (response *http.Response, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, content)
	require.NoError(t, err)
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err = openapitest.Transport(&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response, string(text)
}

// get requests a URL without a key.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, body := send(t, http.MethodGet, url)
	return response.StatusCode, body
}

// awaitReadiness waits until /readyz has a status and a body that contains a text.
func awaitReadiness(t *testing.T, ops string, status int, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, body := get(t, ops+"/readyz")
		return got == status && strings.Contains(body, text)
	}, waitTimeout, 50*time.Millisecond)
}

func apiConfig(url string) config.API {
	cfg := config.Defaults[config.API]()
	cfg.DatabaseURL, cfg.APIAddr, cfg.OpsAddr = config.Secret(url), "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

func dashboardConfig(url string) config.Dashboard {
	cfg := config.Defaults[config.Dashboard]()
	cfg.DatabaseURL, cfg.DashboardAddr, cfg.OpsAddr = config.Secret(url), "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

func notifyConfig(url string) config.Notify {
	cfg := config.Defaults[config.Notify]()
	cfg.DatabaseURL, cfg.OpsAddr = config.Secret(url), "127.0.0.1:0"
	return cfg
}

func startAPI(t *testing.T, cfg config.API) *runningProcess {
	t.Helper()
	return start(t, func(ctx context.Context, p process.Options) error { return service.RunAPI(ctx, cfg, p) })
}

func startIngest(t *testing.T, cfg config.Ingest) *runningProcess {
	t.Helper()
	return start(t, func(ctx context.Context, p process.Options) error { return service.RunIngest(ctx, cfg, p) })
}

// testEnv is a team with one device and an ingest key, and the servers that its processes need.
type testEnv struct {
	t        *testing.T
	database string
	nats     *natstest.Server
	team     uuid.UUID
	device   uuid.UUID
	key      string // an ingest key
	apiKey   string // of scope read
}

// unit is the hardware id of the device.
const unit = "dev:864475046552567"

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	e := &testEnv{t: t, database: dbtest.New(t).URL, nats: natstest.New(t)}
	o, err := admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	defer o.Close()
	team, err := o.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	e.team = uuid.MustParse(team.ID)
	device, err := o.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: unit})
	require.NoError(t, err)
	e.device = uuid.MustParse(device.DeviceID)
	key, err := o.CreateIngestKey(t.Context(), roomsensor.Key{TeamID: e.team})
	require.NoError(t, err)
	e.key = key.Key
	reader, err := o.CreateAPIKey(t.Context(), roomsensor.Key{TeamID: e.team, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)
	e.apiKey = reader.Key
	return e
}

// config returns the configuration of an ingest process.
func (e *testEnv) config() config.Ingest {
	cfg := config.Defaults[config.Ingest]()
	cfg.DatabaseURL, cfg.NATSURL = config.Secret(e.database), config.Secret(e.nats.URL)
	cfg.StreamMaxBytes, cfg.DocsURL = 64*config.MiB, "https://docs.example/x"
	cfg.IngestAddr, cfg.OpsAddr = "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

// createStream creates the stream, as a worker does.
func (e *testEnv) createStream() {
	e.t.Helper()
	cfg := e.config()
	_, err := admin.UpdateStream(e.t.Context(), cfg.Queue, cfg.Stream)
	require.NoError(e.t, err)
}

// upload posts one upload of one reading for each of so many buckets, beginning with the given bucket.
func (e *testEnv) upload(receiver string, bucket, readings int) (status int, body string) {
	e.t.Helper()
	var text bytes.Buffer
	for n := range readings {
		at := time.Date(2026, time.January, 1, 0, 5*(bucket+n), 3, 0, time.UTC)
		fmt.Fprintf(&text, `{"hardware_id":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`+"\n",
			unit, roomsensor.FormatTime(at), 400+n)
	}
	response, answer := sendBody(e.t, http.MethodPost, receiver+"/uploads", &text, "Authorization", "Bearer "+e.key)
	return response.StatusCode, answer
}

// stored returns the number of stored readings.
func (e *testEnv) stored() (readings int) {
	e.t.Helper()
	s, err := store.Open(e.t.Context(), e.database, store.API)
	require.NoError(e.t, err)
	defer s.Close()
	err = s.EachReading(e.t.Context(), e.team, e.device, roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: time.Unix(0, 0), To: roomsensor.Forever}, Limit: roomsensor.MaxPage,
	}, func(*roomsensor.Reading) { readings++ })
	require.NoError(e.t, err)
	return readings
}

// awaitStored waits until n readings are stored.
func (e *testEnv) awaitStored(n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.stored() == n }, waitTimeout, 20*time.Millisecond)
}
