package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/api"
	"roomsensor/internal/canary"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is what the clock of a fixture shows first.
var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// The ids of a fixture's team and first device.
var (
	teamID   = uuid.MustParse("7ea00000-0000-4000-8000-000000000001")
	deviceID = uuid.MustParse("de000000-0000-4000-8000-000000000001")
)

const docsURL = "https://docs.example/docs"

// fixture is the API over a fresh database with one team, one device and a key
// of each scope.
type fixture struct {
	*replica
	url     string // of the database
	store   *store.Store
	sql     *pgxpool.Pool // for what only SQL can say
	clock   *clock
	readKey string
	key     string // of scope read_write
}

func setup(t testing.TB) *fixture {
	t.Helper()
	return setupOn(t, dbtest.New(t))
}

func setupOn(t testing.TB, database *dbtest.DB) *fixture {
	t.Helper()
	f := &fixture{url: database.URL, clock: &clock{at: start}}
	f.store = openStore(t, database.URL)
	var err error
	f.sql, err = pgxpool.New(t.Context(), database.URL)
	require.NoError(t, err)
	t.Cleanup(f.sql.Close)
	f.addTeam(t, teamID)
	f.addDevice(t, teamID, deviceID, "dev:1")
	f.readKey = f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	f.key = f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeReadWrite})
	f.replica = f.serve(t, backend{f.store}, nil)
	return f
}

func openStore(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.API)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// serve starts one more replica of the API. It logs at level debug, and at the
// end of every test there is no secret of a key in what it wrote (decision 26).
func (f *fixture) serve(t testing.TB, b api.Backend, configure func(*api.Config), tune ...func(*http.Server)) *replica {
	t.Helper()
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	r := &replica{log: &lockedBuffer{}}
	t.Cleanup(func() { require.Empty(t, canary.Keys([]byte(r.log.String())), "secrets in the log") })
	logger := zerolog.New(r.log).Level(zerolog.DebugLevel)
	cfg := api.Config{
		DocsURL: docsURL, CursorSecret: secret, Docs: docsStub, Now: f.clock.now, Log: logger,
		SnapshotAge: -1, // A test sees at once what it stored.
	}
	if configure != nil {
		configure(&cfg)
	}
	handler, err := api.New(cfg, b)
	require.NoError(t, err)
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = api.NewServer("", handler, logger)
	for _, change := range tune {
		change(r.server.Config)
	}
	r.server.Listener = api.Paced(r.server.Listener)
	r.server.Start()
	t.Cleanup(r.server.Close)
	r.server.Client().Transport.(*http.Transport).DisableCompression = true
	r.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r
}

var docsStub = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/docs" {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "the docs")
})

// backend is the store as the API wants it.
type backend struct{ *store.Store }

func (b backend) OpenExport(ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery) (api.Export, error) {
	export, err := b.Export(ctx, teamID, q)
	if err != nil {
		return nil, err
	}
	return export, nil
}

// replica is one running API.
type replica struct {
	server *httptest.Server
	log    *lockedBuffer
}

// clock is the API's, moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lockedBuffer gathers log lines that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// response is an answer, read whole.
type response struct {
	request *http.Request
	status  int
	header  http.Header
	body    []byte
	err     error // where there was no answer, or a part of one, or one that the document does not know
}

// option changes a request before it is sent.
type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func withKey(key string) option {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

var withoutKey = option(func(r *http.Request) { r.Header.Del("Authorization") })

// do sends a request to a path below {base_url}, with the fixture's
// read_write key unless an option says otherwise.
func (f *fixture) do(t testing.TB, method, path, body string, options ...option) response {
	t.Helper()
	return f.replica.do(t, method, "/v1"+path, body, append([]option{withKey(f.key)}, options...)...)
}

func (r *replica) do(t testing.TB, method, path, body string, options ...option) response {
	t.Helper()
	answer := r.try(t.Context(), method, path, body, options...)
	require.NoError(t, answer.err)
	return answer
}

// try is do for goroutines and for requests that have no answer.
func (r *replica) try(ctx context.Context, method, path, body string, options ...option) response {
	request, err := http.NewRequestWithContext(ctx, method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	for _, option := range options {
		option(request)
	}
	return r.send(request) //nolint:contextcheck // Looking at an answer waits for nothing.
}

// send sends a request as it is, reads the answer and holds it to the document.
func (r *replica) send(request *http.Request) response {
	got, err := r.server.Client().Do(request)
	if err != nil {
		return response{err: err}
	}
	content, err := io.ReadAll(got.Body)
	answer := response{request, got.StatusCode, got.Header, content, errors.Join(err, got.Body.Close())}
	if answer.err == nil {
		answer.err = answer.check()
	}
	return answer
}

func (f *fixture) get(t testing.TB, path string, options ...option) response {
	t.Helper()
	return f.do(t, http.MethodGet, path, "", options...)
}

// patch sends a PATCH of the fixture's device.
func (f *fixture) patch(t testing.TB, body string, options ...option) response {
	t.Helper()
	options = append([]option{header("Content-Type", "application/json")}, options...)
	return f.do(t, http.MethodPatch, "/devices/"+deviceID.String(), body, options...)
}

// errorBody is the envelope of spec 7.
type errorBody struct {
	Error struct {
		Type      string  `json:"type"`
		Code      string  `json:"code"`
		Message   string  `json:"message"`
		Param     *string `json:"param"`
		DocURL    string  `json:"doc_url"`
		RequestID string  `json:"request_id"`
	} `json:"error"`
}

// requireError holds an answer to a code, its status and its param; an empty
// param is null.
func (r response) requireError(t testing.TB, code roomsensor.Code, param string) {
	t.Helper()
	var envelope errorBody
	require.NoError(t, json.Unmarshal(r.body, &envelope), "%d %s", r.status, r.body)
	got := envelope.Error
	require.Equal(t, string(code), got.Code, string(r.body))
	require.Equal(t, "invalid_request_error", got.Type)
	require.NotEmpty(t, got.Message)
	require.Equal(t, docsURL+"/errors/"+string(code), got.DocURL)
	require.Equal(t, r.header.Get("X-Request-Id"), got.RequestID)
	require.Contains(t, string(r.body), `"param":`)
	if param == "" {
		require.Nil(t, got.Param)
	} else {
		require.NotNil(t, got.Param, string(r.body))
		require.Equal(t, param, *got.Param)
	}
	if r.status != http.StatusUnprocessableEntity {
		require.Equal(t, statuses[code], r.status)
	}
}

// list is the envelope of every list.
type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

func decode[T any](t testing.TB, r response) T {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	var body T
	require.NoError(t, json.Unmarshal(r.body, &body), string(r.body))
	return body
}
