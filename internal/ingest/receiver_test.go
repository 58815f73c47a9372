package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// keyShelf keeps upload credentials, and is away when it is told so.
type keyShelf struct {
	mu    sync.Mutex
	keys  []roomsensor.Key
	away  bool
	loads int
}

func (s *keyShelf) IngestKeys(context.Context) ([]roomsensor.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if s.away {
		return nil, errors.New("the database is away")
	}
	return append([]roomsensor.Key(nil), s.keys...), nil
}

func (s *keyShelf) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// add makes a credential and returns its text.
func (s *keyShelf) add(team uuid.UUID, revoked bool) (id, text string) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	key := roomsensor.Key{ID: id, TeamID: team, SecretSHA256: sum}
	if revoked {
		now := time.Now()
		key.RevokedAt = &now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
	return id, text
}

func (s *keyShelf) revokeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range s.keys {
		s.keys[i].RevokedAt = &now
	}
}

// gate is a receiver that listens, with a credential of a team.
type gate struct {
	*bench
	receiver *Receiver
	url      string
	shelf    *keyShelf
	team     uuid.UUID
	keyID    string
	key      string
	log      *bytes.Buffer
	stop     func()
}

func newGate(t testing.TB) *gate {
	t.Helper()
	return newGateBy(t, newBench(t))
}

func newGateBy(t testing.TB, b *bench) *gate {
	t.Helper()
	g := &gate{bench: b, shelf: &keyShelf{}, team: uuid.New(), log: &bytes.Buffer{}}
	g.keyID, g.key = g.shelf.add(g.team, false)
	_, q := g.connect(t)
	g.receiver = NewReceiver(ReceiverConfig{
		Queue: q, Keys: g.shelf, DocsURL: "https://sensors.example/docs",
		Log: zerolog.New(zerolog.SyncWriter(g.log)), Metrics: prometheus.NewRegistry(),
	})
	g.serve(t)
	return g
}

func (g *gate) serve(t testing.TB) {
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

// answer is what a client sees.
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

func (g *gate) do(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(g.ctx, method, g.url+path, body)
	require.NoError(t, err)
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Add(pair[0], pair[1])
	}
	return send(t, request)
}

// send sends a request, and holds the answer to the OpenAPI document.
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
	if a.status != http.StatusAccepted {
		require.NoError(t, json.Unmarshal(text, &a.failed))
		require.Equal(t, "invalid_request_error", a.failed.Error.Type)
		require.Equal(t, a.header.Get("X-Request-Id"), a.failed.Error.RequestID)
		require.Equal(t, "https://sensors.example/docs/errors/"+a.failed.Error.Code, a.failed.Error.DocURL)
	}
	return a
}

func (g *gate) post(t *testing.T, body string, headers ...string) answer {
	t.Helper()
	return g.do(t, http.MethodPost, "/uploads", strings.NewReader(body), append(headers, "Authorization", "Bearer "+g.key)...)
}

func (a answer) requireCode(t *testing.T, status int, code roomsensor.Code) {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, string(code), a.failed.Error.Code)
}

// inStream is what the stream holds.
func (g *gate) inStream(t *testing.T) (texts []string) {
	t.Helper()
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	for sequence := uint64(1); sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		msg, err := stream.GetMsg(g.ctx, sequence)
		require.NoError(t, err)
		require.Equal(t, g.team.String(), msg.Header.Get(queue.TeamHeader))
		texts = append(texts, msg.Subject+" "+string(msg.Data))
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

func TestUploadsAreConfirmedOnceTheStreamHasThem(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	a := g.post(t, small)
	require.Equal(t, 202, a.status)
	require.JSONEq(t, `{"stored":1}`, a.body)
	require.Equal(t, "application/json; charset=utf-8", a.header.Get("Content-Type"))
	require.Equal(t, []string{"uploads.dev:1 " + small}, g.inStream(t))

	a = g.post(t, small+"\n"+second+"\n", "Content-Type", "text/anything")
	require.JSONEq(t, `{"stored":2}`, a.body)
	require.JSONEq(t, `{"stored":1}`, g.post(t, "{\n"+small[1:]+"\n").body)
	require.JSONEq(t, `{"stored":1}`, g.post(t, gzipped(t, second), "Content-Encoding", "gzip").body)
	require.JSONEq(t, `{"stored":2}`, g.post(t, zstandard(t, small+"\n"+second), "Content-Encoding", "ZSTD").body)
	require.JSONEq(t, `{"stored":1}`, g.post(t, small, "Content-Encoding", "identity").body)
	require.Len(t, g.inStream(t), 8)
	require.Equal(t, "uploads.dev:1 {\n"+small[1:], g.inStream(t)[3])
}

func TestARequestWithABadLineIsNotTakenAtAll(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	a := g.post(t, small+"\n"+small+"\n{\n")
	a.requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Nil(t, a.failed.Error.Param)
	require.Contains(t, a.failed.Error.Message, "Line 3: ")
	require.Contains(t, a.failed.Error.Message, "Nothing of the request was taken.")
	g.post(t, "").requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Empty(t, g.inStream(t))
}

func TestWhatIsTooLargeIsNotTaken(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	line := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 900_000) + `"}` + "\n"
	huge := strings.Repeat(line, 19)
	bomb := strings.Repeat(" ", 200<<20)
	wide := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 1_000_000) + `"}`
	many := `{"hardware_id":"dev:1","readings":[` + strings.Repeat("1,", 10_000) + "1]}"
	for name, a := range map[string]answer{
		"body":              g.post(t, huge),
		"body, gzip":        g.post(t, gzipped(t, huge), "Content-Encoding", "gzip"),
		"body, zstd":        g.post(t, zstandard(t, huge), "Content-Encoding", "zstd"),
		"bomb, gzip":        g.post(t, gzipped(t, bomb), "Content-Encoding", "gzip"),
		"window, zstd":      g.post(t, "\x28\xb5\x2f\xfd\x00\x88"+strings.Repeat("x", 99), "Content-Encoding", "zstd"),
		"bomb, zstd":        g.post(t, zstandard(t, bomb), "Content-Encoding", "zstd"),
		"upload":            g.post(t, small+"\n"+wide),
		"number of reading": g.post(t, many),
	} {
		t.Log(name)
		a.requireCode(t, 413, roomsensor.CodeRequestTooLarge)
	}
	require.Empty(t, g.inStream(t))
	require.Zero(t, g.receiver.memory.taken.Load())
	require.JSONEq(t, `{"stored":18}`, g.post(t, strings.Repeat(line, 18)).body)
}

func TestABodyThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	packed := gzipped(t, small)
	for name, a := range map[string]answer{
		"no gzip":        g.post(t, small, "Content-Encoding", "gzip"),
		"empty gzip":     g.post(t, "", "Content-Encoding", "gzip"),
		"cut off gzip":   g.post(t, packed[:len(packed)-9], "Content-Encoding", "gzip"),
		"no zstd":        g.post(t, small, "Content-Encoding", "zstd"),
		"cut off zstd":   g.post(t, zstandard(t, small)[:9], "Content-Encoding", "zstd"),
		"brotli":         g.post(t, small, "Content-Encoding", "br"),
		"two encodings":  g.post(t, small, "Content-Encoding", "gzip, zstd"),
		"named two ways": g.post(t, small, "Content-Encoding", "gzip", "Content-Encoding", "gzip"),
	} {
		t.Log(name)
		a.requireCode(t, 400, roomsensor.CodeValidationFailed)
		require.Equal(t, "Content-Encoding", *a.failed.Error.Param)
	}
	require.Empty(t, g.inStream(t))
}

func TestOnlyUploadCredentialsPass(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, revoked := g.shelf.add(g.team, true)
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, ofAPI, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	cases := map[string]struct {
		code    roomsensor.Code
		headers []string
	}{
		"none":               {roomsensor.CodeIngestKeyMissing, nil},
		"empty":              {roomsensor.CodeIngestKeyInvalid, []string{""}},
		"no scheme":          {roomsensor.CodeIngestKeyInvalid, []string{g.key}},
		"another scheme":     {roomsensor.CodeIngestKeyInvalid, []string{"Basic " + g.key}},
		"twice":              {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + g.key, "Bearer " + g.key}},
		"of the API":         {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + ofAPI}},
		"unknown":            {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + unknown}},
		"wrong secret":       {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + g.key + "x"}},
		"revoked":            {roomsensor.CodeIngestKeyRevoked, []string{"Bearer " + revoked}},
		"revoked, no secret": {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + revoked + "x"}},
	}
	for name, c := range cases {
		t.Log(name)
		var headers []string
		for _, value := range c.headers {
			headers = append(headers, "Authorization", value)
		}
		a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), headers...)
		a.requireCode(t, 401, c.code)
		require.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"))
		require.Nil(t, a.failed.Error.Param)
	}
	require.Empty(t, g.inStream(t))
	a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "bEARER "+g.key)
	require.Equal(t, 202, a.status)
}

func TestEveryOtherRouteIsAnError(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, path := range []string{"/", "/upload", "/uploads/", "/v1/uploads", "/metrics"} {
		g.do(t, http.MethodPost, path, nil).requireCode(t, 404, roomsensor.CodeNotFound)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		a := g.do(t, method, "/uploads", nil)
		a.requireCode(t, 405, roomsensor.CodeMethodNotAllowed)
		require.Equal(t, "POST", a.header.Get("Allow"))
	}
}

func TestAFullOrAbsentStreamAnswers503AndRecovers(t *testing.T) {
	t.Parallel()
	g := newGateBy(t, newBenchOf(t, 1<<20))
	half := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 600_000) + `"}`
	require.Equal(t, 202, g.post(t, half).status)
	a := g.post(t, half)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "10", a.header.Get("Retry-After"))
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(g.ctx))
	require.Equal(t, 202, g.post(t, half).status)

	g.server.Shutdown()
	g.post(t, small).requireCode(t, 503, roomsensor.CodeOverloaded)
	g.server.Restart(t)
	require.Eventually(t, func() bool { return g.post(t, small).status == 202 }, patience, 50*time.Millisecond)
}

// A receiver needs the queue alone.
func TestUploadsGoOnWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	require.Equal(t, 202, g.post(t, small).status)
	g.shelf.setAway(true)
	require.Equal(t, 202, g.post(t, small).status)
	_, newer := g.shelf.add(g.team, false)
	a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+newer)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.NotEmpty(t, a.header.Get("Retry-After"))

	g.shelf.setAway(false)
	require.Eventually(t, func() bool {
		return g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+newer).status == 202
	}, patience, 50*time.Millisecond)
}

func TestANewCredentialWorksAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for range 5 {
		_, g.key = g.shelf.add(g.team, false)
		require.Equal(t, 202, g.post(t, small).status)
	}
}

func TestARequestIsLoggedInOneLineWithoutItsSecret(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	request := g.post(t, small+"\n"+second).header.Get("X-Request-Id")
	g.do(t, http.MethodGet, "/uploads?key="+g.key, nil)
	g.do(t, http.MethodGet, "/"+g.key, nil)
	g.stop()

	var lines []map[string]any
	for line := range strings.Lines(g.log.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		if fields["message"] == "request" {
			lines = append(lines, fields)
		}
	}
	require.Len(t, lines, 3)
	require.Equal(t, request, lines[0]["request_id"])
	require.Equal(t, "POST /uploads", lines[0]["route"])
	require.InDelta(t, 202, lines[0]["status"], 0)
	require.InDelta(t, 2, lines[0]["uploads"], 0)
	require.InDelta(t, len(small)+1+len(second), lines[0]["bytes"], 0)
	require.Equal(t, g.keyID, lines[0]["key_id"])
	require.Equal(t, "other /uploads", lines[1]["route"])
	require.Equal(t, "method_not_allowed", lines[1]["code"])
	require.Equal(t, "unknown", lines[2]["route"])
	secret := g.key[strings.LastIndex(g.key, "_")+1:]
	require.NotContains(t, g.log.String(), secret)
}

// brokenShelf panics, as a mistake of ours would.
type brokenShelf struct{}

func (brokenShelf) IngestKeys(context.Context) ([]roomsensor.Key, error) { panic("a mistake") }

func TestAPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := NewReceiver(ReceiverConfig{Keys: brokenShelf{}, Log: zerolog.New(&log), Metrics: prometheus.NewRegistry()})
	_, key, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	request := httptest.NewRequest(http.MethodPost, "/uploads", strings.NewReader(small))
	request.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), `"code":"internal_error"`)
	require.NotContains(t, w.Body.String(), "mistake")
	require.Contains(t, log.String(), "a mistake")
}

// What was answered with 202 is in the stream, also when the receiver is
// stopped in the middle, 20 times.
func TestAStopOfTheReceiverLosesNothingThatWasConfirmed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.stop()
	stored := 0
	for range 20 {
		g.serve(t)
		answers := make(chan int, 64)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for {
					status := g.try(small + "\n" + second)
					answers <- status
					if status != http.StatusAccepted {
						return
					}
				}
			})
		}
		go func() {
			<-answers
			g.stop()
			group.Wait()
			close(answers)
		}()
		stored++ // The answer that was waited for.
		for status := range answers {
			if status == http.StatusAccepted {
				stored++
			}
		}
	}
	require.GreaterOrEqual(t, len(g.inStream(t)), 2*stored)
}

// try posts like a client that takes no answer for a no.
func (g *gate) try(body string) int {
	request, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.url+"/uploads", strings.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+g.key)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestTheReceiverMeasures(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.post(t, small+"\n"+second)
	g.post(t, "hello")
	require.Eventually(t, func() bool { // It counts after it has answered.
		return measured(t, g.receiver.metrics.requests.WithLabelValues("400", "validation_failed")) == 1
	}, patience, time.Millisecond)
	require.InDelta(t, 1, measured(t, g.receiver.metrics.requests.WithLabelValues("202", "")), 0)
	require.InDelta(t, 2, measured(t, g.receiver.metrics.uploads), 0)
}
