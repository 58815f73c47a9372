package pg

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/tracing"
)

// slowAcquire is the shortest wait for a connection that gets a span.
const slowAcquire = time.Millisecond

// tracer makes a span of each statement below the span of its context. A span has the name of the statement in
// queries/, and no SQL or arguments. Without a recorded span in the context it costs two look-ups in the context.
type tracer struct{}

type (
	statementKey struct{} // of the span of a statement, in its context
	acquireKey   struct{} // of the time at which the wait for a connection began
)

// TraceQueryStart implements pgx.QueryTracer.
func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return beginStatement(ctx, statementName(data.SQL))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endStatement(ctx, data.CommandTag, data.Err)
}

// TraceBatchStart implements pgx.BatchTracer. A batch is one round trip and has one span.
func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	name := "batch"
	if n := data.Batch.Len(); n > 0 { // The last statement is what the others prepare.
		name = statementName(data.Batch.QueuedQueries[n-1].SQL)
	}
	return beginStatement(ctx, name)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endStatement(ctx, pgconn.CommandTag{}, data.Err)
}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (tracer) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return context.WithValue(ctx, acquireKey{}, time.Now())
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (tracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	began, ok := ctx.Value(acquireKey{}).(time.Time)
	if !ok || time.Since(began) < slowAcquire {
		return
	}
	_, span := tracing.Child(ctx, "acquire connection", trace.WithTimestamp(began))
	setError(span, data.Err)
	span.End()
}

func beginStatement(ctx context.Context, name string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	statement, span := tracing.Child(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(semconv.DBSystemNamePostgreSQL, semconv.DBOperationName(name)))
	return context.WithValue(statement, statementKey{}, span)
}

func endStatement(ctx context.Context, tag pgconn.CommandTag, err error) {
	span, ok := ctx.Value(statementKey{}).(trace.Span)
	if !ok {
		return
	}
	if rows := tag.RowsAffected(); rows > 0 {
		span.SetAttributes(attribute.Int64("roomsensor.rows", rows))
	}
	setError(span, err)
	span.End()
}

// CopyFrom runs a COPY statement with rows in its binary format, and returns their number. pgx does not trace COPY.
func CopyFrom(ctx context.Context, tx pgx.Tx, sql string, rows []byte) (int64, error) {
	ctx = beginStatement(ctx, statementName(sql))
	copied, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(rows), sql)
	endStatement(ctx, copied, err)
	return copied.RowsAffected(), err
}

// setError records the SQLSTATE of an error, never its text, which may contain values.
func setError(span trace.Span, err error) {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return
	}
	kind := "other"
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		kind = refused.Code
	case errors.Is(err, context.DeadlineExceeded):
		kind = "timeout"
	case errors.Is(err, context.Canceled):
		kind = "canceled"
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, "")
}

// statementName returns the name that sqlc writes before a statement, or the first word of one without a name, such as
// begin.
func statementName(sql string) string {
	name := strings.TrimPrefix(sql, "-- name: ")
	if end := strings.IndexAny(name, " ;\n"); end >= 0 {
		name = name[:end]
	}
	return name
}
