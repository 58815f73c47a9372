package receiver

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// sourceServer is a testServer with a source for JSON and one for line protocol.
type sourceServer struct {
	*testServer
	json, lines       string // paths
	jsonKey, linesKey string
}

func newSourceServer(t *testing.T) *sourceServer {
	t.Helper()
	g := &sourceServer{testServer: newTestServer(t)}
	g.json, g.jsonKey = g.addSource("notehub")
	g.lines, g.linesKey = g.addSource("influx")
	return g
}

// addSource adds a key of a new source. A format that is empty stands for a disabled one.
func (g *sourceServer) addSource(format string) (path, key string) {
	id := uuid.New()
	_, key = g.keys.addKey(roomsensor.Key{TeamID: g.team, Source: &roomsensor.KeySource{ID: id, Format: format}})
	return "/sources/" + id.String(), key
}

func (g *sourceServer) message(t *testing.T, path, body string, headers ...string) answer {
	t.Helper()
	return g.do(t, http.MethodPost, path, strings.NewReader(body), headers...)
}

// last returns the number of messages in the stream and the newest one.
func (g *sourceServer) last(t *testing.T) (n uint64, text string, header map[string][]string) {
	t.Helper()
	stream, err := g.js.Stream(g.ctx, queue.StreamName)
	require.NoError(t, err)
	if n = stream.CachedInfo().State.LastSeq; n == 0 {
		return 0, "", nil
	}
	msg, err := stream.GetMsg(g.ctx, n)
	require.NoError(t, err)
	require.Equal(t, "uploads."+g.team.String()+".-", msg.Subject)
	return n, string(msg.Data), msg.Header
}

// A sender authenticates in any way that it knows, with one credential of the source.
func TestSourceCredentials(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.1", "A10.3", "A10.9")
	g := newSourceServer(t)
	basic := func(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }
	for _, header := range []string{"Bearer " + g.jsonKey, "Token " + g.jsonKey, "token  " + g.jsonKey, basic("anyone:" + g.jsonKey)} {
		require.Equal(t, http.StatusOK, g.message(t, g.json, "{}", "Authorization", header).status, header)
	}
	require.Equal(t, http.StatusOK, g.message(t, g.json+"?key="+g.jsonKey, "{}").status)
	require.Equal(t, http.StatusOK, g.message(t, g.json+"?key="+g.jsonKey, "{}", "Authorization", "Bearer "+g.jsonKey).status)
	stored, _, _ := g.last(t)
	require.EqualValues(t, 6, stored)

	disabled, disabledKey := g.addSource("")
	for _, c := range []struct {
		path    string
		status  int
		code    roomsensor.Code
		says    string
		headers []string
	}{
		{g.json, 401, roomsensor.CodeIngestKeyMissing, "key=<INGEST_KEY>", nil},
		{g.json, 401, roomsensor.CodeIngestKeyInvalid, "several different", []string{"Authorization", "Bearer " + g.linesKey}},
		{g.json + "?key=" + g.linesKey, 401, roomsensor.CodeIngestKeyInvalid, "several different", []string{"Authorization", "Bearer " + g.jsonKey}},
		{g.json, 401, roomsensor.CodeIngestKeyInvalid, "Bearer, Token or Basic", []string{"Authorization", "Digest " + g.jsonKey}},
		{g.json, 401, roomsensor.CodeIngestKeyInvalid, "Bearer, Token or Basic", []string{"Authorization", "Basic !"}},
		{g.json, 403, roomsensor.CodeInsufficientScope, "for POST /uploads", []string{"Authorization", "Bearer " + g.key}},
		{g.lines, 403, roomsensor.CodeInsufficientScope, "belongs to a source", []string{"Authorization", "Bearer " + g.jsonKey}},
		{"/sources/x", 403, roomsensor.CodeInsufficientScope, "belongs to a source", []string{"Authorization", "Bearer " + g.jsonKey}},
		{"/uploads", 403, roomsensor.CodeInsufficientScope, "belongs to a source", []string{"Authorization", "Bearer " + g.jsonKey}},
		{disabled, 401, roomsensor.CodeIngestKeyRevoked, "disabled or was deleted", []string{"Authorization", "Bearer " + disabledKey}},
	} {
		path := c.path
		if c.says == "several different" && !strings.Contains(path, "?") {
			path += "?key=" + g.jsonKey
		}
		a := g.message(t, path, small, c.headers...)
		a.requireCode(t, c.status, c.code)
		require.Contains(t, a.failed.Error.Message, c.says)
	}
	a := g.do(t, http.MethodGet, "/rejects", nil, "Authorization", "Bearer "+g.jsonKey)
	a.requireCode(t, 403, roomsensor.CodeInsufficientScope)
	after, _, _ := g.last(t)
	require.Equal(t, stored, after, "a refused message was stored")
	require.NotContains(t, g.log.String(), g.jsonKey)
	require.NotContains(t, g.log.String(), g.linesKey)
}

// The stream has what was sent, whatever it is, before the sender has its answer.
func TestSourceStores(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.5", "A10.6")
	g := newSourceServer(t)
	with := []string{"Authorization", "Bearer " + g.jsonKey}
	for _, body := range []string{`{"device":"dev:1"}`, "no JSON \xff\x00", strings.Repeat("[", 1_000_000)} {
		a := g.message(t, g.json, body, with...)
		require.Equal(t, http.StatusOK, a.status)
		require.JSONEq(t, `{"stored":1}`, a.body)
		_, text, header := g.last(t)
		require.Equal(t, body, text)
		require.Equal(t, map[string][]string{"Roomsensor-Source": {strings.TrimPrefix(g.json, "/sources/")}}, header)
	}
	stored, _, _ := g.last(t)
	a := g.message(t, g.json, gzipped(t, "packed"), append(with, "Content-Encoding", "gzip")...)
	require.Equal(t, http.StatusOK, a.status)
	_, text, _ := g.last(t)
	require.Equal(t, "packed", text)

	a = g.message(t, g.json, "", with...)
	require.JSONEq(t, `{"stored":0}`, a.body)
	a = g.message(t, g.json, "", append(with, "Content-Encoding", "gzip")...)
	require.JSONEq(t, `{"stored":0}`, a.body)
	g.message(t, g.json, strings.Repeat("x", 1_000_001), with...).requireCode(t, 413, roomsensor.CodeRequestTooLarge)
	packed := gzipped(t, strings.Repeat("x", 1_000_001))
	g.message(t, g.json, packed, append(with, "Content-Encoding", "gzip")...).requireCode(t, 413, roomsensor.CodeRequestTooLarge)
	g.message(t, g.json+"?dry-run=true", "{}", with...).requireCode(t, 400, roomsensor.CodeValidationFailed)
	g.message(t, g.json+"?precision=s", "{}", with...).requireCode(t, 400, roomsensor.CodeValidationFailed)
	after, _, _ := g.last(t)
	require.Equal(t, stored+1, after)
}

// Writers of line protocol post to paths of their own, and ask whether the service is there.
func TestSourceLines(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.4", "A10.6")
	g := newSourceServer(t)
	for path, precision := range map[string]string{
		"": "", "/write?db=x&rp=y&u=z&consistency=all&precision=s&p=" + g.linesKey: "s",
		"/api/v2/write?org=x&bucket=y&precision=ms": "ms",
	} {
		var headers []string
		if !strings.Contains(path, "p=") {
			headers = []string{"Authorization", "Token " + g.linesKey}
		}
		a := g.message(t, g.lines+path, "room co2=1 1", headers...)
		require.Equal(t, http.StatusNoContent, a.status, a.body)
		require.Empty(t, a.body)
		_, _, header := g.last(t)
		require.Equal(t, precision, strings.Join(header["Roomsensor-Precision"], ","))
	}
	with := []string{"Authorization", "Bearer " + g.linesKey}
	require.Equal(t, http.StatusNoContent, g.message(t, g.lines+"/write", "", with...).status)
	g.message(t, g.lines+"?precision=h", "room co2=1", with...).requireCode(t, 400, roomsensor.CodeValidationFailed)
	g.message(t, g.lines+"?event=up", "room co2=1", with...).requireCode(t, 400, roomsensor.CodeValidationFailed)
	stored, _, _ := g.last(t)
	require.EqualValues(t, 3, stored)

	for _, method := range []string{http.MethodGet, http.MethodHead} {
		require.Equal(t, http.StatusNoContent, g.do(t, method, g.lines+"/ping", nil).status)
		require.Equal(t, http.StatusOK, g.do(t, method, g.lines+"/health", nil).status)
	}
	for _, path := range []string{g.lines + "/", g.lines + "/query", g.lines + "/api/v2/query", "/sources", "/sources/"} {
		g.message(t, path, "", with...).requireCode(t, 404, roomsensor.CodeNotFound)
	}
	g.message(t, g.json+"/write", "{}", "Authorization", "Bearer "+g.jsonKey).requireCode(t, 404, roomsensor.CodeNotFound)
	g.do(t, http.MethodGet, g.lines, nil, with...).requireCode(t, 405, roomsensor.CodeMethodNotAllowed)
}

// A sender that exceeds its share gets a 503: several never repeat after a 429. A refused request counts too (decision
// 53 a).
func TestSourceShare(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.6", "decision 53 a 2")
	g := newSourceServer(t)
	g.receiver.rates = frozenRates(1, 1<<20)
	for range burstSeconds {
		a := g.message(t, g.json, "room co2=1", "Authorization", "Bearer "+g.linesKey)
		a.requireCode(t, 403, roomsensor.CodeInsufficientScope)
	}
	a := g.message(t, g.lines, "room co2=1", "Authorization", "Bearer "+g.linesKey)
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	for range burstSeconds + 1 {
		a = g.message(t, g.json, "{}", "Authorization", "Bearer "+g.jsonKey)
	}
	a.requireCode(t, 503, roomsensor.CodeOverloaded)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Contains(t, a.failed.Error.Message, "more than its share")
	stored, _, _ := g.last(t)
	require.EqualValues(t, burstSeconds, stored)
	g.server.Shutdown()
	g.receiver.rates = newRates(1_000, 1<<20)
	g.message(t, g.json, "{}", "Authorization", "Bearer "+g.jsonKey).requireCode(t, 503, roomsensor.CodeOverloaded)
}

// A dry run shows what a worker would make of a message, and stores nothing.
func TestSourceDryRun(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.11")
	g := newDatabaseServer(t)
	name := "Hall"
	_, err := g.owner.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: g.team, HardwareID: "A8:40:41:B9:D1:C2:F3:E4", DisplayName: &name}, rejectedAt)
	require.NoError(t, err)
	created, err := g.owner.CreateSource(t.Context(), roomsensor.Source{TeamID: g.team, Name: "n", Format: "notehub"}, nil)
	require.NoError(t, err)
	_, key := g.keys.addKey(roomsensor.Key{TeamID: g.team, Source: &roomsensor.KeySource{ID: created.ID, Format: "notehub"}})
	path := "/sources/" + created.ID.String() + "?dry_run=true"
	devices, err := g.owner.TeamDevices(t.Context(), g.team, false)
	require.NoError(t, err)
	a := g.ask(t, key, http.MethodPost, path, `{"device":"a84041b9d1c2f3e4","when":1763632800,"body":{"co2":640,"temperature":200}}`)
	require.JSONEq(t, `{"readings":[{"unit":"a84041b9d1c2f3e4","hardware_id":"dev:12123762463225344996","device_id":"`+devices[0].ID.String()+`",
		"display_name":"Hall","measured_at":"2025-11-20T10:00:00Z","bucket_at":"2025-11-20T10:00:00Z",
		"co2_ppm":640,"temp_c":null,"humidity_pct":null,"lux":null,"spl_db":null}],
		"rejects":[{"reason":"value_invalid","unit":"a84041b9d1c2f3e4","detail":"temp_c is outside its plausible range and becomes null in 1 of 1 readings."}],
		"ignored":0}`, a.body)
	a = g.ask(t, key, http.MethodPost, path, `{"device":"other","when":1763632800,"body":{"co2":640}}`)
	require.Contains(t, a.body, `"device_id":null`)
	require.Contains(t, a.body, `"reason":"unknown_unit","unit":"other"`)
	a = g.ask(t, key, http.MethodPost, path, `{`)
	require.Contains(t, a.body, `"reason":"not_mapped","unit":null`)
	g.ask(t, key, http.MethodPost, "/sources/"+created.ID.String()+"?dry_run=1", "{}").requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Zero(t, (&sourceServer{testServer: g.testServer}).count(t))
}

func (g *sourceServer) count(t *testing.T) uint64 {
	t.Helper()
	n, _, _ := g.last(t)
	return n
}
