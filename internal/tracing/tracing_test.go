package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/tracing"
	"roomsensor/test/otlptest"
	"roomsensor/test/proctest"
)

// The ids are those of the examples of W3C Trace Context.
const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampledBy   = "00-" + clientTrace + "-00f067aa0ba902b7-01"
	unsampledBy = "00-" + clientTrace + "-00f067aa0ba902b7-00"
)

func start(t *testing.T, c tracing.Config) *tracing.Tracer {
	t.Helper()
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	tracer, err := tracing.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tracer.Stop(context.WithoutCancel(t.Context()))) })
	return tracer
}

func TestOff(t *testing.T) {
	t.Parallel()
	tracer := start(t, tracing.Config{})
	require.Nil(t, tracer)
	ctx, span := tracer.Begin(t.Context(), "request")
	require.Equal(t, t.Context(), ctx)
	require.False(t, span.IsRecording())
	ctx, span = tracing.Child(ctx, "statement")
	require.Equal(t, t.Context(), ctx)
	require.False(t, span.IsRecording())
	require.Empty(t, tracing.Inject(ctx))
}

func TestExport(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	registry := prometheus.NewRegistry()
	tracer := start(t, tracing.Config{
		URL: collector.URL + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer abc"},
		Ratio: 1, Service: "roomsensor-test", Version: "1.2.3", Metrics: registry,
	})
	ctx, request := tracer.Begin(tracing.Extract(t.Context(), sampledBy), "request")
	child, statement := tracing.Child(ctx, "statement")
	header := tracing.Inject(child)
	statement.End()
	request.End()
	require.NoError(t, tracer.Stop(t.Context()), "it exports what is left")

	parent, inner := collector.Await(t, "request"), collector.Await(t, "statement")
	require.Equal(t, clientTrace, parent.TraceID())
	require.Equal(t, "00f067aa0ba902b7", parent.ParentID())
	require.Equal(t, clientTrace, inner.TraceID())
	require.Equal(t, parent.ID(), inner.ParentID())
	require.Equal(t, "00-"+clientTrace+"-"+inner.ID()+"-01", header)
	require.Equal(t, inner.ID(), tracing.Parent(header).SpanID().String())
	require.Equal(t, "roomsensor-test", parent.Service)
	require.Equal(t, "Bearer abc", collector.Requests()[0].Get("Authorization"))
	requireSpans(t, registry, 2, 2)
}

// requireSpans checks the counters of spans that ended and that were exported.
func requireSpans(t *testing.T, registry prometheus.Gatherer, ended, exported float64) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{
		"roomsensor_tracing_spans_ended_total": ended, "roomsensor_tracing_spans_exported_total": exported,
	}, values)
}

// A client decides neither by its flag nor by its trace id whether it is recorded, unless it is trusted.
func TestSampling(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	recorded := func(ratio float64, trust bool, header string) int {
		tracer := start(t, tracing.Config{URL: collector.URL + "/v1/traces", Ratio: ratio, TrustParent: trust})
		n := 0
		for range 1000 {
			ctx, span := tracer.Begin(tracing.Extract(t.Context(), header), "request")
			if span.IsRecording() {
				n++
			}
			if header != "" {
				require.Equal(t, clientTrace, span.SpanContext().TraceID().String())
			}
			_, child := tracing.Child(ctx, "statement")
			require.Equal(t, span.IsRecording(), child.IsRecording())
		}
		return n
	}
	for _, header := range []string{"", sampledBy, unsampledBy} {
		require.Zero(t, recorded(0, false, header))
		require.Equal(t, 1000, recorded(1, false, header))
		// A sampler that decides by the trace id would record all requests with one id, or none. The bounds are 9 standard
		// deviations away.
		require.InDelta(t, 100, recorded(0.1, false, header), 86)
	}
	require.Equal(t, 1000, recorded(0, true, sampledBy))
	require.Zero(t, recorded(1, true, unsampledBy))
	require.Equal(t, 1000, recorded(1, true, ""))
}

// A batch is recorded if one of the spans is to which it links.
func TestSamplingOfLinks(t *testing.T) {
	t.Parallel()
	tracer := start(t, tracing.Config{URL: otlptest.New(t).URL + "/v1/traces", Ratio: 0})
	_, batch := tracer.Begin(t.Context(), "batch", trace.WithLinks(trace.Link{SpanContext: tracing.Parent(sampledBy)}))
	require.True(t, batch.IsRecording())
	batch.End()
	require.False(t, tracing.Parent(unsampledBy).IsValid(), "a message of an unrecorded upload has no span to link to")
	for _, malformed := range []string{"", "x", sampledBy + "x", "00-" + clientTrace, "ff" + sampledBy[2:]} {
		require.False(t, tracing.Parent(malformed).IsValid(), malformed)
		require.Equal(t, t.Context(), tracing.Extract(t.Context(), malformed))
	}
}

// A collector that fails loses spans, which are counted, and logged once a minute.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	requests := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		requests <- struct{}{}
	}))
	defer server.Close()
	registry, log := prometheus.NewRegistry(), &proctest.Output{}
	tracer := start(t, tracing.Config{URL: server.URL, Ratio: 1, Metrics: registry, Log: zerolog.New(log)})
	const batches, perBatch = 3, 512 // The size of a batch of the SDK.
	for range batches {
		for range perBatch {
			_, span := tracer.Begin(t.Context(), "request")
			span.End()
		}
		<-requests
	}
	require.NoError(t, tracer.Stop(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	requireSpans(t, registry, batches*perBatch, 0)
}

// A collector that does not respond delays neither requests nor the end of the process.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	hanging, release := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hanging <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	registry, log := prometheus.NewRegistry(), &proctest.Output{}
	tracer := start(t, tracing.Config{URL: server.URL, Ratio: 1, Metrics: registry, Log: zerolog.New(log)})
	const spans = 10_000 // Several times the queue of 2,048 spans.
	for range spans {
		_, span := tracer.Begin(t.Context(), "request")
		span.End() // It would wait for the collector if the queue were not bounded.
	}
	<-hanging
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, tracer.Stop(ctx))
	requireSpans(t, registry, spans, 0)
	require.NotEmpty(t, log.String())
}
