package httpedge

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

// RequestIDHeader carries the request id on every response (decision 8).
const RequestIDHeader = "X-Request-Id"

// NewRequestID returns a random id for one request. No part of it comes from the client (decision 8).
func NewRequestID() string { return "req_" + strings.ToLower(rand.Text()) }

// WithRequestID wraps a handler so that each of its responses carries a request id.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(RequestIDHeader, NewRequestID())
		next.ServeHTTP(w, r)
	})
}

const (
	// UnmatchedRoute is the route of a request whose path the listener does not know.
	UnmatchedRoute = "unmatched"
	// StatusClientGone is logged instead of the status if the client left before the response was complete.
	StatusClientGone = 499
)

// AccessEntry is the one log line of a request. Every process logs the same fields: request_id, route, method, status,
// duration_ms, bytes, rows, trace_id, key_id or user_id, code and error; with sampling, also sample. A request that
// fails has more of them, so that support can answer a client that quotes its request id: limit, param, client,
// user_agent, the path if it was not found, and the stack of a panic.
type AccessEntry struct {
	RequestID string
	TraceID   string // empty without tracing
	Route     string // the template, never the URL, which may carry a key; or UnmatchedRoute
	Method    string
	Status    int
	Duration  time.Duration
	Bytes     int64           // of the payload: of the API's response as sent, or of a received body when decompressed
	Rows      int             // items in the payload: readings, devices or uploads; -1 if the payload has none
	KeyID     string          // empty if the request was not authenticated with a key
	UserID    string          // id of the person who is signed in to the dashboard; empty for all other requests
	Code      roomsensor.Code // of the error that the client saw; empty on success

	err                 error  // the cause
	limit               string // that refused the request
	message, param      string // of the error that the client saw
	client, agent, path string // of the request that failed; path only of a 404
}

// The limits of what the log repeats of a request, in bytes.
const (
	maxLoggedParam   = 64
	maxLoggedPath    = 200
	maxLoggedAgent   = 200
	maxLoggedMessage = 500
)

// Fail records an error of a request, the error that its client saw instead, and the address of the client. Call it
// before Log.
func (e *AccessEntry) Fail(err error, public *roomsensor.Error, r *http.Request, client string) {
	e.Code, e.limit, e.err = public.Code, public.Limit, err
	e.param, e.message = Shown(public.Param, maxLoggedParam), Shown(public.Message, maxLoggedMessage)
	e.Refuse(r, client)
	if public.Code.Status() == http.StatusNotFound {
		e.path = Shown(r.URL.Path, maxLoggedPath)
	}
}

// Refuse records the client of a request that failed. Without Fail, a page of its own refused the request, such as the
// sign-in page for a wrong password.
func (e *AccessEntry) Refuse(r *http.Request, client string) {
	e.client, e.agent = client, Shown(r.UserAgent(), maxLoggedAgent)
}

// slowRequest is the duration from which on a request is always logged.
const slowRequest = time.Second

// AccessLog is the log of the requests of a listener.
type AccessLog struct {
	logger zerolog.Logger
	// successes selects one in several of the fast requests that succeed.
	successes zerolog.Sampler
	sample    int
	// strangers and failures limit the lines of requests without a valid credential, to 20 per second each: anybody can
	// send thousands, and must not fill the disk of the log. The service may refuse them with a 503, so that these lines
	// are limited too, apart from the others, which must not hide them. Metrics count all of them.
	strangers, failures zerolog.Sampler
	sampled, limited    prometheus.Counter // lines that were left out
}

// NewAccessLog returns the log of a listener, which has one of sample fast requests that succeed, and all of the
// others; 0 means all. It counts the lines that it leaves out.
func NewAccessLog(logger zerolog.Logger, sample int, registerer prometheus.Registerer) *AccessLog {
	limit := func() zerolog.Sampler { return &zerolog.BurstSampler{Burst: 20, Period: time.Second} }
	omitted := promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "roomsensor_access_log_omitted_total",
		Help: "Requests without a line in the log: sample is LOG_ACCESS_SAMPLE, limit are requests without a valid " +
			"credential beyond 20 per second.",
	}, []string{"reason"})
	sample = max(sample, 1)
	return &AccessLog{
		logger: logger, sample: sample, successes: &zerolog.BasicSampler{N: uint32(sample)}, //nolint:gosec // Not negative.
		strangers: limit(), failures: limit(),
		sampled: omitted.WithLabelValues("sample"), limited: omitted.WithLabelValues("limit"),
	}
}

// omits reports whether an entry is left out, and counts it.
func (l *AccessLog) omits(e *AccessEntry) bool {
	of, omitted := l.successes, l.sampled
	switch known := e.KeyID != "" || e.UserID != ""; {
	case known && !e.isSample():
		return false
	case known:
	case e.isFailure():
		of, omitted = l.failures, l.limited
	default:
		of, omitted = l.strangers, l.limited
	}
	if of.Sample(e.level()) {
		return false
	}
	omitted.Inc()
	return true
}

// isSample reports whether an entry may be left out of a sample: its request succeeded, and fast.
func (e *AccessEntry) isSample() bool {
	return e.Status < http.StatusBadRequest && e.err == nil && e.Duration < slowRequest
}

// Log writes the entry: a failure of the service at level error, all others at level info. A line of a sample has the
// number of requests that it stands for.
func (e *AccessEntry) Log(to *AccessLog) {
	if to.omits(e) {
		return
	}
	line := to.logger.WithLevel(e.level()).
		Str("request_id", e.RequestID).Str("route", e.Route).Str("method", BoundedMethod(e.Method)).
		Int("status", e.Status).Dur("duration_ms", e.Duration).Int64("bytes", e.Bytes)
	if e.Rows >= 0 {
		line.Int("rows", e.Rows)
	}
	if to.sample > 1 && e.isSample() && (e.KeyID != "" || e.UserID != "") {
		line.Int("sample", to.sample)
	}
	for _, field := range [...]struct{ name, value string }{
		{"trace_id", e.TraceID},
		{"key_id", e.KeyID},
		{"user_id", e.UserID},
		{"code", string(e.Code)},
		{"limit", e.limit},
		{"param", e.param},
		{"path", e.path},
		{"client", e.client},
		{"user_agent", e.agent},
	} {
		if field.value != "" {
			line.Str(field.name, field.value)
		}
	}
	switch {
	case e.err == nil:
	case e.isFailure() || e.Status == StatusClientGone:
		line.Err(e.err)
	default: // The client is at fault. The cause may repeat more of its request than the message.
		line.Str(zerolog.ErrorFieldName, e.message)
	}
	if panicked, ok := errors.AsType[*panics.Error](e.err); ok {
		line.Bytes("stack", panicked.Stack)
	}
	line.Msg("request")
}

// isFailure reports whether the service failed: with a 5xx, or in the middle of a response that began as a success. A
// 501 is caused by the client (decision 48), and a redirect is a whole answer.
func (e *AccessEntry) isFailure() bool {
	return e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented ||
		e.err != nil && e.Status < http.StatusMultipleChoices
}

func (e *AccessEntry) level() zerolog.Level {
	if e.isFailure() {
		return zerolog.ErrorLevel
	}
	return zerolog.InfoLevel
}

// StatusLabel returns the status as a label of metrics. That of a 501 is 4xx, so that no client raises an alert on 5xx
// (decision 48), and that of a response that began as a success and broke off is 5xx.
func (e *AccessEntry) StatusLabel() string {
	switch {
	case e.Status == http.StatusNotImplemented:
		return "4xx"
	case e.isFailure() && e.Status < http.StatusInternalServerError:
		return "5xx"
	}
	return strconv.Itoa(e.Status)
}

// BoundedMethod returns the method, or "other" for one that no listener knows, so that clients cannot put made-up words
// into logs and metrics.
func BoundedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut,
		http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
