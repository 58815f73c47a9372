package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
	"roomsensor/test/openapitest"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// patience limits every wait of a test.
const patience = proctest.Patience

// env is a NATS server with a declared stream.
type env struct {
	server *natstest.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	queue  *queue.Queue
	room   int64           // of the stream, in bytes
	ctx    context.Context //nolint:containedctx // Of the test.
}

func newEnv(t testing.TB) *env {
	t.Helper()
	return newEnvOf(t, 256<<20)
}

// newEnvOf makes an env whose stream has a size in bytes. All connections declare the same size, because a larger one
// would widen the stream at any time.
func newEnvOf(t testing.TB, room int64) *env {
	t.Helper()
	b := &env{server: natstest.New(t), room: room}
	b.nc, b.queue = b.connect(t)
	var err error
	b.js, err = jetstream.New(b.nc)
	require.NoError(t, err)
	require.NoError(t, b.queue.Declare(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	t.Cleanup(cancel)
	b.ctx = ctx
	return b
}

// connect makes a connection of its own, like another process.
func (b *env) connect(t testing.TB) (*nats.Conn, *queue.Queue) {
	t.Helper()
	nc, err := queue.Connect(b.server.URL, t.Name(), zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	q, err := queue.New(nc, queue.Config{Replicas: 1, MaxBytes: b.room})
	require.NoError(t, err)
	return nc.Conn, q
}

// keyStore holds ingest keys in memory. It can be made unavailable.
type keyStore struct {
	mu          sync.Mutex
	keys        []roomsensor.Key
	uses        []roomsensor.KeyUse
	unavailable bool
}

func (s *keyStore) read() ([]roomsensor.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return nil, errors.New("the database is unavailable")
	}
	return append([]roomsensor.Key(nil), s.keys...), nil
}

func (s *keyStore) IngestKeysByID(context.Context, []string) ([]roomsensor.Key, error) {
	return s.read()
}

func (s *keyStore) IngestKeysAfter(context.Context, string, int32) ([]roomsensor.Key, error) {
	return s.read()
}

func (s *keyStore) IngestKeyPosition(context.Context) (p roomsensor.KeyPosition, err error) {
	_, err = s.read()
	return p, err
}

func (s *keyStore) IngestKeysChanged(context.Context, roomsensor.KeyPosition, int32) ([]roomsensor.Key, error) {
	return s.read()
}

func (s *keyStore) recordUses(_ context.Context, uses []roomsensor.KeyUse) error {
	s.uses = append(s.uses, uses...)
	return nil
}

func (s *keyStore) setUnavailable(unavailable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = unavailable
}

// add adds a key and returns its id and text.
func (s *keyStore) add(team uuid.UUID, revoked bool) (id, text string) {
	key := roomsensor.Key{TeamID: team}
	if revoked {
		key.RevokedAt = new(time.Now())
	}
	return s.addKey(key)
}

// addExpired adds a key that expires now.
func (s *keyStore) addExpired(team uuid.UUID) (id, text string) {
	return s.addKey(roomsensor.Key{TeamID: team, ExpiresAt: new(time.Now())})
}

func (s *keyStore) addKey(key roomsensor.Key) (id, text string) {
	key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.IngestKey)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
	return key.ID, text
}

// testServer is a running receiver with one key.
type testServer struct {
	*env
	receiver *Receiver
	registry *prometheus.Registry
	url      string
	keys     *keyStore
	team     uuid.UUID
	keyID    string
	key      string
	log      *bytes.Buffer
	stop     func()
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	return newTestServerOn(t, newEnv(t))
}

func newTestServerOn(t testing.TB, b *env) *testServer {
	t.Helper()
	g := &testServer{env: b, keys: &keyStore{}, team: uuid.New(), log: &bytes.Buffer{}, registry: prometheus.NewRegistry()}
	g.keyID, g.key = g.keys.add(g.team, false)
	_, q := g.connect(t)
	g.receiver = New(Config{
		Queue: q, Keys: g.keys, KeyUses: httpedge.NewKeyUses(g.keys.recordUses, time.Now, zerolog.Nop()), DocsURL: "https://sensors.example/docs",
		Log: zerolog.New(zerolog.SyncWriter(g.log)), Metrics: g.registry,
		RequestsPerSecond: 1_000_000, BytesPerSecond: 1 << 40,
	})
	g.serve(t)
	return g
}

func (g *testServer) serve(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.receiver.Run(ctx, listener) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(g.stop)
}

// answer is a response, with the envelope of an error.
type answer struct {
	status int
	header http.Header
	body   string
	failed struct {
		Error struct {
			Type      string  `json:"type"`
			Code      string  `json:"code"`
			Message   string  `json:"message"`
			Param     *string `json:"param"`
			DocURL    string  `json:"doc_url"`
			RequestID string  `json:"request_id"`
		} `json:"error"`
	}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func (g *testServer) do(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(g.ctx, method, g.url+path, body)
	require.NoError(t, err)
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Add(pair[0], pair[1])
	}
	return send(t, request)
}

// send sends a request and checks the response against the OpenAPI document.
func send(t require.TestingT, request *http.Request) answer {
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	a := answer{status: response.StatusCode, header: response.Header, body: string(text)}
	require.NoError(t, openapitest.Receiver().Check(&openapitest.Answer{
		Request: request, Status: a.status, Header: a.header, Body: text,
	}))
	if request.Method == http.MethodHead {
		return a
	}
	if a.status >= http.StatusBadRequest {
		require.NoError(t, json.Unmarshal(text, &a.failed))
		require.Equal(t, "invalid_request_error", a.failed.Error.Type)
		require.Equal(t, a.header.Get("X-Request-Id"), a.failed.Error.RequestID)
		require.Equal(t, "https://sensors.example/docs/errors/"+a.failed.Error.Code, a.failed.Error.DocURL)
	}
	return a
}

func (g *testServer) post(t *testing.T, body string, headers ...string) answer {
	t.Helper()
	return g.do(t, http.MethodPost, "/uploads", strings.NewReader(body), append(headers, "Authorization", "Bearer "+g.key)...)
}

func (a answer) requireCode(t *testing.T, status int, code roomsensor.Code) {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, string(code), a.failed.Error.Code)
}

// requireStored checks the numbers of a receipt.
func (a answer) requireStored(t *testing.T, uploads, readings int) {
	t.Helper()
	require.Equal(t, http.StatusAccepted, a.status, a.body)
	var got receipt
	require.NoError(t, json.Unmarshal([]byte(a.body), &got))
	require.Equal(t, []int{uploads, readings}, []int{got.Stored, got.Readings})
}

// inStream returns the messages in the stream, which are those of the team, as "unit data" with the unit in the data.
func (g *testServer) inStream(t *testing.T) (texts []string) {
	t.Helper()
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	for sequence := uint64(1); sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		msg, err := stream.GetMsg(g.ctx, sequence)
		require.NoError(t, err)
		require.Equal(t, "uploads."+g.team.String()+".-", msg.Subject)
		var upload struct {
			Unit string `json:"hardware_id"`
		}
		require.NoError(t, json.Unmarshal(msg.Data, &upload))
		texts = append(texts, upload.Unit+" "+string(msg.Data))
	}
	return texts
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.String()
}

func zstandard(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return string(w.EncodeAll([]byte(text), nil))
}

const second = `{"hardware_id":"dev:2","readings":[{"measured_at":"for the worker"}]}`
