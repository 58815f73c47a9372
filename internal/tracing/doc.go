// Package tracing exports spans to a collector with OpenTelemetry, and passes the context of a trace on.
//
// A process without a collector has no tracer: Start returns a nil Tracer, Begin and Child return spans that do
// nothing, and no header is sent. Spans have names of routes and statements, and never values: no parameters, payloads,
// labels or hardware ids.
package tracing
