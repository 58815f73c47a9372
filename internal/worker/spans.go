package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/tracing"
)

// batchSpans are the spans of a batch that stores at least one upload whose trace is recorded. The batch has a trace of
// its own, with its statements, because it belongs to several uploads; it links to them. Each of these uploads gets a
// span in its own trace, which ends after the commit and links to the batch. A nil *batchSpans does nothing.
type batchSpans struct {
	batch   trace.Span
	uploads map[*delivery]trace.Span
}

// beginSpans starts the spans of a batch, and returns the context for its statements.
func beginSpans(ctx context.Context, tracer *tracing.Tracer, b *batch) (context.Context, *batchSpans) {
	if tracer == nil {
		return ctx, nil
	}
	var links []trace.Link
	for _, d := range b.deliveries {
		if d.trace.IsValid() {
			links = append(links, trace.Link{SpanContext: d.trace})
		}
	}
	if len(links) == 0 {
		return ctx, nil
	}
	ctx, span := tracer.Begin(ctx, "store batch", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(semconv.MessagingSystemKey.String("nats"),
			semconv.MessagingBatchMessageCount(len(b.deliveries)), attribute.Int("roomsensor.readings", b.readings)))
	s := &batchSpans{span, make(map[*delivery]trace.Span, len(links))}
	toBatch := trace.WithLinks(trace.Link{SpanContext: span.SpanContext()})
	for _, d := range b.deliveries {
		if d.trace.IsValid() {
			parent := trace.ContextWithRemoteSpanContext(ctx, d.trace)
			_, s.uploads[d] = tracer.Begin(parent, "store upload", trace.WithSpanKind(trace.SpanKindConsumer), toBatch,
				trace.WithAttributes(attribute.Int("roomsensor.readings", d.readings()),
					attribute.Int("roomsensor.deliveries", d.deliveries)))
		}
	}
	return ctx, s
}

func (s *batchSpans) traceID() string { return s.batch.SpanContext().TraceID().String() }

// end ends the spans. That of an upload has the number of its rejects and the reason of the first one.
func (s *batchSpans) end(results []result, err error) {
	if s == nil {
		return
	}
	for i := range results {
		r := &results[i]
		span := s.uploads[r.delivery]
		if span == nil {
			continue
		}
		if !r.stored {
			span.SetStatus(codes.Error, "returned to the queue")
		} else if len(r.rejects) > 0 {
			span.SetAttributes(attribute.Int("roomsensor.rejects", len(r.rejects)),
				attribute.String("roomsensor.reject_reason", string(r.rejects[0].Reason)))
		}
		span.End()
	}
	if err != nil {
		s.batch.SetStatus(codes.Error, "returned uploads to the queue")
	}
	s.batch.End()
}
