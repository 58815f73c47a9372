package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// exportTimeout bounds one request to the collector; it is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
	exportTimeout = 10 * time.Second
	// maxAnswer bounds what is read of a response, which is a few bytes.
	maxAnswer = 64 << 10
	// logInterval is the shortest interval between two lines about failed exports.
	logInterval = time.Minute
)

// client sends spans to a collector over HTTP. It replaces otlptracehttp, which brings gRPC and 2.2 MB into the
// program. It does not send a batch again: the queue would fill meanwhile, and lose others.
type client struct {
	url     string
	headers map[string]string
	http    *http.Client
	process context.Context //nolint:containedctx // Ends when the process has stopped.
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends a batch of spans. TracesData has the encoding of the request of OTLP, whose type needs gRPC.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	text, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}
	var body bytes.Buffer
	compressor := gzip.NewWriter(&body)
	if _, err := compressor.Write(text); err != nil {
		return fmt.Errorf("compressing spans: %w", err)
	}
	if err := compressor.Close(); err != nil {
		return fmt.Errorf("compressing spans: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.process, cancel)() //nolint:contextcheck // It only ends ctx.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, &body)
	if err != nil {
		return fmt.Errorf("requesting the collector: %w", err)
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "gzip")
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("requesting the collector: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // So that the connection can be used again.
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector responded with status %d", response.StatusCode)
	}
	return nil
}

// refuseRedirect keeps the headers, which may contain a secret, from another server.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// exporter counts what it exports, and logs failures once in a while.
type exporter struct {
	*otlptrace.Exporter
	counters *counters
	log      zerolog.Logger
	loggedAt atomic.Int64 // in ns of Unix time
}

// ExportSpans sends a batch of spans. It returns no error: the SDK would write it to stderr.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.Exporter.ExportSpans(ctx, spans)
	if err == nil {
		e.counters.exported.Add(float64(len(spans)))
		return nil
	}
	now, last := time.Now().UnixNano(), e.loggedAt.Load()
	if now-last >= int64(logInterval) && e.loggedAt.CompareAndSwap(last, now) {
		e.log.Warn().Err(err).Msg("could not export spans; they are lost (roomsensor_tracing_spans_ended_total " +
			"less roomsensor_tracing_spans_exported_total); logged once a minute")
	}
	return nil
}

// counters count spans. As a processor of the SDK they see every recorded span that ends, before the bounded queue.
type counters struct{ ended, exported prometheus.Counter }

func newCounters(registerer prometheus.Registerer) *counters {
	factory := promauto.With(registerer)
	return &counters{
		ended: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_tracing_spans_ended_total", Help: "Recorded spans that ended.",
		}),
		exported: factory.NewCounter(prometheus.CounterOpts{
			Name: "roomsensor_tracing_spans_exported_total",
			Help: "Spans that the collector accepted. The others were lost, because it was unavailable or too slow, or are " +
				"on their way.",
		}),
	}
}

// OnStart implements sdktrace.SpanProcessor.
func (c *counters) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (c *counters) OnEnd(sdktrace.ReadOnlySpan) { c.ended.Inc() }

// Shutdown implements sdktrace.SpanProcessor.
func (c *counters) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (c *counters) ForceFlush(context.Context) error { return nil }
