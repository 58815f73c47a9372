package tracing

import (
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// sampler decides which traces are recorded. Clients are not trusted: neither their sampled flag nor their trace id,
// which they choose, has a say. That is why the decision is random, and not a function of the trace id as in the
// sampler of the SDK.
type sampler struct {
	ratio       float64
	trustParent bool
}

// ShouldSample implements sdktrace.Sampler. A span that has links is recorded if one of the linked spans is, so that a
// batch is recorded with its uploads.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	sampled := false
	switch {
	case len(p.Links) > 0:
		for i := range p.Links {
			sampled = sampled || p.Links[i].SpanContext.IsSampled()
		}
	case parent.IsValid() && (s.trustParent || !parent.IsRemote()):
		sampled = parent.IsSampled()
	default:
		sampled = rand.Float64() < s.ratio //nolint:gosec // A client that guesses it gains nothing.
	}
	if sampled {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// Description implements sdktrace.Sampler.
func (s sampler) Description() string { return "roomsensor" }
