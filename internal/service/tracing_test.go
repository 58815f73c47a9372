package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/service"
	"roomsensor/test/otlptest"
)

// The context of a trace that a client sends, from the examples of W3C Trace Context.
const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
	traceparent = "00-" + clientTrace + "-" + clientSpan + "-00"
)

// tracingTo sends all traces to a collector. What clients decide does not count.
func tracingTo(collector *otlptest.Collector) config.Tracing {
	return config.Tracing{OTLPEndpoint: collector.URL, Sampler: "always_on", SamplerArg: "1"}
}

// logged returns the log line of a request.
func logged(t *testing.T, r *runningProcess, requestID string) (line map[string]any) {
	t.Helper()
	for text := range strings.Lines(r.log.String()) {
		if strings.Contains(text, `"`+requestID+`"`) {
			require.NoError(t, json.Unmarshal([]byte(text), &line))
			return line
		}
	}
	require.FailNow(t, "the request is not in the log", r.log.String())
	return nil
}

// An upload is one trace, from the request of the client to the commit of the worker, which links to its batch.
func TestTracingUpload(t *testing.T) {
	t.Parallel()
	e, collector := newTestEnv(t), otlptest.New(t)
	cfg := e.config()
	cfg.Tracing = tracingTo(collector)
	r := startIngest(t, cfg)
	r.address("ops")
	receiver := r.address("receiver")
	r.awaitReady()
	response, body := sendBody(t, http.MethodPost, receiver+"/uploads", strings.NewReader(fmt.Sprintf(
		`{"hardware_id":%q,"readings":[{"measured_at":"2026-01-01T00:00:03Z","co2_ppm":417.25}]}`, unit)),
		"Authorization", "Bearer "+e.key, "traceparent", traceparent, "tracestate", "vendor=clientstate")
	require.Equal(t, 202, response.StatusCode, body)
	e.awaitStored(1)
	require.NoError(t, r.end(), "it exports what is left")

	request := collector.Await(t, "POST /uploads")
	require.Equal(t, clientTrace, request.TraceID())
	require.Equal(t, clientSpan, request.ParentID())
	require.Equal(t, "roomsensor-ingest", request.Service)
	requestID := response.Header.Get("X-Request-Id")
	require.Equal(t, requestID, request.Attribute("roomsensor.request_id"))
	require.Equal(t, clientTrace, logged(t, r, requestID)["trace_id"])

	publish, stored, batch := collector.Await(t, "publish uploads"), collector.Await(t, "store upload"), collector.Await(t, "store batch")
	require.Equal(t, request.ID(), publish.ParentID())
	require.Equal(t, publish.ID(), stored.ParentID())
	for _, s := range []*otlptest.Span{publish, stored} {
		require.Equal(t, clientTrace, s.TraceID())
	}
	require.True(t, batch.LinksTo(publish))
	require.True(t, stored.LinksTo(batch))
	require.Empty(t, batch.ParentID())
	require.Contains(t, r.log.String(), `"trace_id":"`+batch.TraceID()+`","message":"stored a batch"`)
	require.GreaterOrEqual(t, stored.GetEndTimeUnixNano(), commitOf(t, collector, batch).GetEndTimeUnixNano())

	requireHarmless(t, collector, unit, e.key, e.database, "417.25", "clientstate", "INSERT", "unnest(")
}

// commitOf returns the span of the commit of a batch, and checks that its statements have the names of the queries.
func commitOf(t *testing.T, collector *otlptest.Collector, batch *otlptest.Span) (commit *otlptest.Span) {
	t.Helper()
	var names []string
	for _, s := range collector.Spans() {
		if s.ParentID() == batch.ID() {
			names = append(names, s.GetName())
		}
		if s.ParentID() == batch.ID() && s.GetName() == "commit" {
			commit = s
		}
	}
	require.Subset(t, names, []string{"HardwareList", "begin", "ReadingUpsert", "commit"})
	return commit
}

// requireHarmless checks that no span contains what only the database and the client should know.
func requireHarmless(t *testing.T, collector *otlptest.Collector, secrets ...string) {
	t.Helper()
	require.NotEmpty(t, collector.Text())
	for _, secret := range secrets {
		require.NotContains(t, collector.Text(), secret)
	}
}

// A request to the API is one trace with its statements.
func TestTracingAPI(t *testing.T) {
	t.Parallel()
	e, collector := newTestEnv(t), otlptest.New(t)
	cfg := apiConfig(e.database)
	cfg.Tracing = tracingTo(collector)
	r := startAPI(t, cfg)
	r.address("ops")
	api := r.address("api")
	r.awaitReady()
	response, _ := send(t, http.MethodGet, api+"/v1/devices/"+e.device.String()+"/assignments?limit=7",
		"Authorization", "Bearer "+e.apiKey, "traceparent", traceparent, "User-Agent", "curious/1.0")
	require.Equal(t, 200, response.StatusCode)
	send(t, http.MethodGet, api+"/v1/secret-path", "traceparent", "malformed")
	send(t, "INVENTED", api+"/v1/team")
	require.NoError(t, r.end())

	request := collector.Await(t, "GET /v1/devices/:device_id/assignments")
	require.Equal(t, clientTrace, request.TraceID())
	require.Equal(t, clientSpan, request.ParentID())
	require.Equal(t, "roomsensor-api", request.Service)
	requestID := response.Header.Get("X-Request-Id")
	require.Equal(t, requestID, request.Attribute("roomsensor.request_id"))
	require.Equal(t, clientTrace, logged(t, r, requestID)["trace_id"])
	statement := collector.Await(t, "AssignmentList")
	require.Equal(t, clientTrace, statement.TraceID())
	require.Equal(t, request.ID(), statement.ParentID())
	require.Equal(t, "postgresql", statement.Attribute("db.system.name"))

	unmatched := collector.Await(t, "GET unmatched")
	require.NotEqual(t, clientTrace, unmatched.TraceID())
	require.Equal(t, "not_found", unmatched.Attribute("error.type"))
	collector.Await(t, "other /v1/team")
	requireHarmless(t, collector, e.device.String(), e.apiKey, "limit=7", "curious", "secret-path", "INVENTED", "SELECT")
}

// A request to the dashboard is one trace with its statements.
func TestTracingDashboard(t *testing.T) {
	t.Parallel()
	e, collector := newTestEnv(t), otlptest.New(t)
	cfg := config.Defaults[config.Dashboard]()
	cfg.DatabaseURL, cfg.DashboardAddr, cfg.OpsAddr = config.Secret(e.database), "127.0.0.1:0", "127.0.0.1:0"
	cfg.Tracing = tracingTo(collector)
	r := start(t, func(ctx context.Context, p process.Options) error { return service.RunDashboard(ctx, cfg, p) })
	r.address("ops")
	dashboard := r.address("dashboard")
	r.awaitReady()
	const session = "c2VjcmV0LXNlc3Npb24tdG9rZW4tb2YtYS1wZXJzb24"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, dashboard+"/teams/"+e.team.String()+"/settings", nil)
	require.NoError(t, err)
	request.Header.Set("Cookie", "roomsensor="+session)
	request.Header.Set("traceparent", traceparent)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.NoError(t, r.end())

	page, statement := collector.Await(t, "GET /teams/:team_id/settings"), collector.Await(t, "SessionGet")
	require.Equal(t, clientTrace, page.TraceID())
	require.Equal(t, page.ID(), statement.ParentID())
	require.Equal(t, "roomsensor-dashboard", page.Service)
	requireHarmless(t, collector, session, e.team.String())
}

// Without a collector nothing is traced: no spans, no header in the stream, no field in the log.
func TestTracingOff(t *testing.T) {
	t.Parallel()
	e, collector := newTestEnv(t), otlptest.New(t)
	r := startIngest(t, e.config())
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	response, body := sendBody(t, http.MethodPost, receiver+"/uploads", strings.NewReader(fmt.Sprintf(
		`{"hardware_id":%q,"readings":[{"measured_at":"2026-01-01T00:00:03Z","co2_ppm":417.25}]}`, unit)),
		"Authorization", "Bearer "+e.key, "traceparent", traceparent[:len(traceparent)-1]+"1")
	require.Equal(t, 202, response.StatusCode, body)
	e.awaitStored(1)
	message := e.storedMessage()
	require.Empty(t, message.Header.Get("traceparent"))
	_, metrics := get(t, ops+"/metrics")
	require.Contains(t, metrics, "roomsensor_tracing_spans_ended_total 0")
	require.NoError(t, r.end())
	require.NotContains(t, r.log.String(), "trace_id")
	require.NotContains(t, r.log.String(), clientTrace)
	require.Empty(t, collector.Requests())
}

// storedMessage returns the first message of the stream.
func (e *testEnv) storedMessage() *jetstream.RawStreamMsg {
	e.t.Helper()
	conn, err := nats.Connect(e.nats.URL)
	require.NoError(e.t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(e.t, err)
	ctx, cancel := context.WithTimeout(e.t.Context(), waitTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, queue.StreamName)
	require.NoError(e.t, err)
	message, err := stream.GetMsg(ctx, 1)
	require.NoError(e.t, err)
	return message
}
