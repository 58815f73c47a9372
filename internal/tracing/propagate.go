package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Header carries the context of a trace in HTTP requests and in messages of the stream (W3C Trace Context). The second
// header of that standard, tracestate, is neither read nor sent: its content is the client's.
const Header = "traceparent"

// Extract returns ctx with the remote parent that a header names. A missing or malformed one changes nothing.
func Extract(ctx context.Context, header string) context.Context {
	if header == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{Header: header})
}

// Parent returns the recorded span that a header of a message names. It is not valid if there is none.
func Parent(header string) trace.SpanContext {
	parent := trace.SpanContextFromContext(Extract(context.Background(), header))
	if !parent.IsSampled() {
		return trace.SpanContext{}
	}
	return parent
}

// Inject returns the header that makes the span of ctx a parent, or an empty text if that span is not recorded.
func Inject(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[Header]
}
