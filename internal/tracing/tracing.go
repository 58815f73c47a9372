package tracing

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name under which all spans are made.
const scope = "roomsensor"

// flushTimeout bounds how long a stopping process waits until the collector has its last spans. It is a part of the 20
// seconds that a process has to stop.
const flushTimeout = 3 * time.Second

// Config is the configuration of a Tracer.
type Config struct {
	URL     string            // of the collector for traces over HTTP, with its path; empty means no tracing
	Headers map[string]string // of each request to the collector
	TLS     *tls.Config       // nil means the CAs of the system
	// Ratio is the share of traces that are recorded, 0 to 1.
	Ratio float64
	// TrustParent means that the sampled flag of a client decides instead of Ratio, where it sent one.
	TrustParent bool
	Service     string // name of the process; OTEL_SERVICE_NAME takes precedence
	Version     string
	Log         zerolog.Logger
	Metrics     prometheus.Registerer
}

// Tracer makes the spans of a process. A nil Tracer makes none.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	exporter *exporter
	cancel   context.CancelFunc
}

// Start starts the export of spans in the background, or returns nil without a collector. Its error is that of a
// variable of OpenTelemetry with a wrong form, such as OTEL_RESOURCE_ATTRIBUTES.
func Start(ctx context.Context, c Config) (*Tracer, error) {
	counters := newCounters(c.Metrics)
	if c.URL == "" {
		return nil, nil //nolint:nilnil // A nil Tracer makes no spans.
	}
	process, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version),
			semconv.ServiceInstanceID(uuid.NewString())),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describing the process for traces (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	exporting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // Nothing replaces it.
	transport.TLSClientConfig = c.TLS
	e := &exporter{
		Exporter: otlptrace.NewUnstarted(&client{
			url: c.URL, headers: c.Headers, process: exporting,
			http: &http.Client{Transport: transport, Timeout: exportTimeout, CheckRedirect: refuseRedirect},
		}),
		counters: counters, log: c.Log,
	}
	if err := e.Start(exporting); err != nil {
		cancel()
		return nil, fmt.Errorf("starting the export of spans: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sampler{c.Ratio, c.TrustParent}), sdktrace.WithResource(process),
		sdktrace.WithSpanProcessor(counters), sdktrace.WithBatcher(e))
	return &Tracer{provider.Tracer(scope), provider, e, cancel}, nil
}

// Stop sends the last spans, for at most 3 s, and ends the export. It returns no error, because spans that are lost
// must not make the end of a process a failure: they are logged and counted.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	defer t.cancel() // It ends a request that hangs.
	flushing, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(flushing); err != nil {
		t.exporter.log.Warn().Err(err).Msg("could not export the last spans")
	}
	return nil
}

// Begin starts a span that has no parent in this process. The parent is that of Extract, if any.
func (t *Tracer) Begin(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	if t == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return t.tracer.Start(ctx, name, options...) //nolint:spancheck // The caller ends it.
}

// Child starts a span below that of ctx. If that is not recorded, the new one does nothing, and ctx is returned as is.
func Child(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, options...) //nolint:spancheck // The caller ends it.
}
