package httpedge

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/tracing"
)

// Span is the span of one request. The zero value, of a request without tracing, does nothing.
type Span struct{ span trace.Span }

// BeginSpan starts the span of a request, below the one that the client names in the header traceparent. It returns the
// request with the context of the span.
func BeginSpan(tracer *tracing.Tracer, r *http.Request) (*http.Request, Span) {
	if tracer == nil {
		return r, Span{}
	}
	parent := tracing.Extract(r.Context(), r.Header.Get(tracing.Header))
	// The route is not known yet: End sets the name.
	ctx, span := tracer.Begin(parent, "request", trace.WithSpanKind(trace.SpanKindServer))
	return r.WithContext(ctx), Span{span}
}

// TraceID returns the id of the trace for the log, or an empty text without tracing.
func (s Span) TraceID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// End ends the span. Its name is the method and the template of the route, and its attributes are fields of the access
// log, never those that contain text of the client: no URL, parameter, message, address or User-Agent.
func (s Span) End(e *AccessEntry) {
	if s.span == nil {
		return
	}
	defer s.span.End()
	if !s.span.IsRecording() {
		return
	}
	method := BoundedMethod(e.Method)
	s.span.SetName(method + " " + e.Route)
	s.span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(e.Route),
		semconv.HTTPResponseStatusCode(e.Status), attribute.String("roomsensor.request_id", e.RequestID))
	if e.KeyID != "" {
		s.span.SetAttributes(attribute.String("roomsensor.key_id", e.KeyID))
	}
	if e.Rows >= 0 {
		s.span.SetAttributes(attribute.Int("roomsensor.rows", e.Rows))
	}
	if e.Code != "" {
		s.span.SetAttributes(semconv.ErrorTypeKey.String(string(e.Code)))
	}
	if e.isFailure() {
		s.span.SetStatus(codes.Error, "")
	}
}
