package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	a := g.post(t, small)
	require.Equal(t, 202, a.status)
	require.JSONEq(t, `{"stored":1,"readings":0,"ignored_fields":[]}`, a.body)
	require.Equal(t, "application/json; charset=utf-8", a.header.Get("Content-Type"))
	require.Equal(t, []string{"dev:1 " + small}, g.inStream(t))

	a = g.post(t, small+"\n"+second+"\n", "Content-Type", "text/anything")
	a.requireStored(t, 2, 1)
	g.post(t, "{\n"+small[1:]+"\n").requireStored(t, 1, 0)
	g.post(t, gzipped(t, second), "Content-Encoding", "gzip").requireStored(t, 1, 1)
	g.post(t, zstandard(t, small+"\n"+second), "Content-Encoding", "ZSTD").requireStored(t, 2, 1)
	g.post(t, small, "Content-Encoding", "identity").requireStored(t, 1, 0)
	require.Len(t, g.inStream(t), 8)
	require.Equal(t, "dev:1 {\n"+small[1:], g.inStream(t)[3])
}

// The receipt counts uploads and readings, and names the unknown members of all of them. The metric counts what was
// stored.
func TestUploadsReceipt(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 46 b", "decision 46 c")
	g := newTestServer(t)
	misspelled := `{"hardware_id":"dev:1","readings":[{"co2":1},{"co2":2,"lux":3}]}`
	g.post(t, misspelled+"\nhello").requireCode(t, 400, roomsensor.CodeValidationFailed)
	a := g.post(t, misspelled+"\n"+second+"\n"+`{"battery":1,"hardware_id":"dev:3","readings":[{}],"signal":{"co2":1}}`)
	require.JSONEq(t, `{"stored":3,"readings":4,"ignored_fields":["co2","battery"]}`, a.body)
	families, err := g.registry.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "roomsensor_receiver_ignored_fields_total" {
			for _, m := range family.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"co2": 3, "battery": 1, "other": 0}, counts)
}

func TestUploadsInvalidLine(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	a := g.post(t, small+"\n"+small+"\n{\n")
	a.requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Nil(t, a.failed.Error.Param)
	require.Contains(t, a.failed.Error.Message, "Line 3: ")
	require.Contains(t, a.failed.Error.Message, "Nothing of the request was stored.")
	g.post(t, "").requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Empty(t, g.inStream(t))
}

func TestUploadsTooLarge(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	line := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 900_000) + `"}` + "\n"
	huge := strings.Repeat(line, 19)
	bomb := strings.Repeat(" ", 32<<20) // Twice what a request may have; more would only take longer to compress.
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
	require.Zero(t, g.receiver.memory.Used())
	g.post(t, strings.Repeat(line, 18)).requireStored(t, 18, 0)
}

func TestUploadsUnreadableBody(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
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

func TestUploadsAuthentication(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	_, revoked := g.keys.add(g.team, true)
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, ofAPI, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	wrong := func(key string) string {
		id, _, _ := roomsensor.ParseKey(roomsensor.IngestKey, key)
		return roomsensor.FormatKey(roomsensor.IngestKey, id, "wrong")
	}
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
		"wrong secret":       {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + wrong(g.key)}},
		"revoked":            {roomsensor.CodeIngestKeyRevoked, []string{"Bearer " + revoked}},
		"revoked, no secret": {roomsensor.CodeIngestKeyInvalid, []string{"Bearer " + wrong(revoked)}},
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

// A request that fails says what exists, and leaves a line in the log with which support can answer.
func TestMessagesAndLogOfErrors(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	for path, want := range map[string]string{
		"/uploads/": "There must not be a slash at the end", "/upload": "There is no such path", "/v1/devices": "The API has its own address",
	} {
		a := g.do(t, http.MethodPost, path, nil)
		a.requireCode(t, 404, roomsensor.CodeNotFound)
		require.Contains(t, a.failed.Error.Message, want)
		require.Contains(t, a.failed.Error.Message, "Send uploads with POST /uploads, messages of a source with POST /sources/{source_id}, and list rejects with GET /rejects.")
	}
	a := g.do(t, http.MethodGet, "/uploads", nil, "User-Agent", "gateway/2", "X-Forwarded-For", "192.0.2.7")
	require.Equal(t, "This path supports POST only.", a.failed.Error.Message)
	g.stop()
	var got map[string]any
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, a.header.Get("X-Request-Id")) {
			require.NoError(t, json.Unmarshal([]byte(line), &got))
		}
	}
	require.Equal(t, "gateway/2", got["user_agent"])
	require.Equal(t, "127.0.0.1", got["client"], "nobody trusts the header")
	require.Equal(t, "This path supports POST only.", got["error"])
	require.Contains(t, g.log.String(), `"path":"/upload"`)
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	for _, path := range []string{"/", "/upload", "/uploads/", "/v1/uploads", "/metrics"} {
		a := g.do(t, http.MethodPost, path, nil)
		a.requireCode(t, 404, roomsensor.CodeNotFound)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Contains(t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		a := g.do(t, method, "/uploads", nil)
		a.requireCode(t, 405, roomsensor.CodeMethodNotAllowed)
		require.Equal(t, "POST", a.header.Get("Allow"))
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		a := g.do(t, method, "/rejects", nil)
		a.requireCode(t, 405, roomsensor.CodeMethodNotAllowed)
		require.Equal(t, "GET, HEAD", a.header.Get("Allow"))
	}
}

func TestUploadsQueueUnavailable(t *testing.T) {
	t.Parallel()
	g := newTestServerOn(t, newEnvOf(t, 1<<20))
	half := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 600_000) + `"}`
	_, err := g.queue.Publish(g.ctx, []queue.Message{{HardwareID: "dev:1", Text: []byte(half)}})
	require.NoError(t, err)
	a := g.post(t, half)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "10", a.header.Get("Retry-After"))
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(g.ctx))
	require.Equal(t, 202, g.post(t, small).status)

	g.server.Shutdown()
	g.post(t, small).requireCode(t, 503, roomsensor.CodeOverloaded)
	g.server.Restart(t)
	require.Eventually(t, func() bool { return g.post(t, small).status == 202 }, patience, 50*time.Millisecond)
}

// A team that has too much in the stream that no worker has stored is refused, and others are not.
func TestUploadsBacklog(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 d 1", "decision 53 d 2")
	g := newTestServerOn(t, newEnvOf(t, 8<<20))
	_, other := g.keys.add(uuid.New(), false)
	half := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", 600_000) + `"}`
	g.post(t, half).requireStored(t, 1, 0)
	a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status)
	a = g.post(t, small)
	a.requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
	require.Equal(t, "5", a.header.Get("Retry-After"))
	require.Contains(t, g.log.String(), `"limit":"backlog.team"`)
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
	a = g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status)

	consumer, err := g.js.Consumer(g.ctx, queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	msg, err := consumer.Next(jetstream.FetchMaxWait(patience))
	require.NoError(t, err)
	require.NoError(t, msg.DoubleAck(g.ctx))
	require.Eventually(t, func() bool { return g.post(t, small).status == 202 }, patience, 50*time.Millisecond)
}

// The receiver goes on with the keys that it knows, and cannot check others.
func TestUploadsDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	require.Equal(t, 202, g.post(t, small).status)
	g.keys.setUnavailable(true)
	require.Equal(t, 202, g.post(t, small).status)
	_, newer := g.keys.add(g.team, false)
	a := g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+newer)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.NotEmpty(t, a.header.Get("Retry-After"))

	g.keys.setUnavailable(false)
	require.Eventually(t, func() bool {
		return g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+newer).status == 202
	}, patience, 50*time.Millisecond)
}

// TestKeyUse checks that a request is a use of its credential if it has the right secret.
func TestKeyUse(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	require.Equal(t, 202, g.post(t, small, "User-Agent", "gateway/3").status)
	id, _ := g.keys.add(g.team, false)
	wrong := roomsensor.FormatKey(roomsensor.IngestKey, id, "wrong")
	require.Equal(t, 401, g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+wrong).status)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	g.receiver.KeyUses.Run(stopped)
	require.Len(t, g.keys.uses, 1)
	require.Equal(t, []string{g.keyID, "gateway/3"}, []string{g.keys.uses[0].KeyID, g.keys.uses[0].Client})
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
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
	require.Equal(t, "/uploads", lines[0]["route"])
	require.Equal(t, "POST", lines[0]["method"])
	require.Equal(t, "info", lines[0]["level"])
	require.Contains(t, lines[0], "duration_ms")
	require.InDelta(t, 202, lines[0]["status"], 0)
	require.InDelta(t, 2, lines[0]["rows"], 0)
	require.InDelta(t, len(small)+1+len(second), lines[0]["bytes"], 0)
	require.Equal(t, g.keyID, lines[0]["key_id"])
	require.Equal(t, "GET", lines[1]["method"])
	require.Equal(t, "method_not_allowed", lines[1]["code"])
	require.Equal(t, "unmatched", lines[2]["route"])
	secret := g.key[strings.LastIndex(g.key, "_")+1:]
	require.NotContains(t, g.log.String(), secret)
}

// panickingKeyStore panics, as a bug would.
type panickingKeyStore struct{ keyStore }

func (*panickingKeyStore) IngestKeysByID(context.Context, []string) ([]roomsensor.Key, error) {
	panic("a bug")
}

func TestUploadsPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := New(Config{Keys: &panickingKeyStore{}, Log: zerolog.New(&log), Metrics: prometheus.NewRegistry()})
	_, key, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	request := httptest.NewRequest(http.MethodPost, "/uploads", strings.NewReader(small))
	request.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), `"code":"internal_error"`)
	require.NotContains(t, w.Body.String(), "a bug", "with a space, which the random request id never has")
	require.Contains(t, log.String(), "panic: a bug")
}

func (g *testServer) tryPath(key, path, body string) int {
	request, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	g.post(t, small+"\n"+second)
	g.post(t, "hello")
	require.Eventually(t, func() bool { // Requests are counted after the response.
		return slices.Equal([]string{
			`code="" method="POST" route="/uploads" status="202" 1`,
			`code="validation_failed" method="POST" route="/uploads" status="400" 1`,
		}, requestCounts(t, g.registry))
	}, patience, time.Millisecond)
	require.InDelta(t, 2, proctest.Value(t, g.receiver.metrics.uploads), 0)
}

// requestCounts returns the labels and values of the counter of requests.
func requestCounts(t *testing.T, registry *prometheus.Registry) (counts []string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "roomsensor_receiver_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			text := ""
			for _, label := range m.GetLabel() {
				text += fmt.Sprintf("%s=%q ", label.GetName(), label.GetValue())
			}
			counts = append(counts, text+fmt.Sprint(m.GetCounter().GetValue()))
		}
	}
	return counts
}

// The scaling guide names the limits of the receiver.
func TestScalingPageLimits(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "scaling.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("at most %d MiB", DefaultMemory>>20))
	require.Contains(t, string(page), fmt.Sprintf("use at most %d MiB (a %dth of `UPLOAD_MEMORY`)",
		DefaultMemory/smallPart>>20, smallPart))
	require.Regexp(t, fmt.Sprintf(`(?m)^\| concurrent requests per credential +\| %d per receiver`, maxPerKey), string(page))
}

// occupy runs maxPerKey requests whose bodies do not end, until finish is called.
func (g *testServer) occupy(t *testing.T) (finish func()) {
	t.Helper()
	var group sync.WaitGroup
	var bodies []*io.PipeWriter
	finish = sync.OnceFunc(func() {
		for _, body := range bodies {
			_, _ = io.WriteString(body, small[1:]) // It fails if the request was answered already.
			_ = body.Close()
		}
		group.Wait()
	})
	t.Cleanup(finish)
	key := g.key
	for range maxPerKey {
		body, w := io.Pipe()
		bodies = append(bodies, w)
		group.Go(func() {
			request, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.url+"/uploads", body)
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+key)
			if response, err := client.Do(request); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool {
		return g.receiver.limiter.Used() == maxPerKey
	}, patience, time.Millisecond)
	for _, body := range bodies { // The time in which the rest must arrive begins again.
		_, err := io.WriteString(body, small[:1])
		require.NoError(t, err)
	}
	return finish
}

// A key whose requests hang does not block other keys, and is admitted again once they end.
func TestUploadsConcurrencyLimit(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	_, other := g.keys.add(g.team, false)
	finish := g.occupy(t)
	a := g.post(t, small)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Contains(t, a.failed.Error.Message, "too many uploads in progress")
	a = g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+other)
	require.Equal(t, 202, a.status, a.body)
	require.Len(t, g.inStream(t), 1)

	finish()
	require.Equal(t, 202, g.post(t, small).status)
	require.Len(t, g.inStream(t), maxPerKey+2)
}
