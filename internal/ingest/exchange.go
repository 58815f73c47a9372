package ingest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"roomsensor/internal/problem"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// queueRetryAfter is what a sender waits when the stream is full or away: about
// as long as a purge or a failover takes.
const queueRetryAfter = 10 * time.Second

// exchange is one request and its answer.
type exchange struct {
	*Receiver
	w       http.ResponseWriter
	r       *http.Request
	id      string
	started time.Time

	read    bool // the whole body
	keyID   string
	bytes   int
	uploads int
	status  int
	code    roomsensor.Code
}

// ServeHTTP answers POST /uploads; every other path and method has an error.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := &exchange{Receiver: r, w: w, r: req, id: problem.NewRequestID(), started: time.Now()}
	w.Header().Set(problem.RequestIDHeader, x.id)
	w.Header().Set("Cache-Control", "no-store")
	defer x.finish()
	if refusal := x.serve(req.Context()); refusal != nil {
		x.fail(refusal)
		return
	}
	x.answer()
}

func (x *exchange) serve(ctx context.Context) *roomsensor.Error {
	if x.r.URL.Path != uploadPath {
		return roomsensor.CodeNotFound.New()
	}
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		return roomsensor.CodeMethodNotAllowed.New()
	}
	key, refusal := x.credentials.authenticate(ctx, x.r.Header.Values("Authorization"))
	if refusal != nil {
		return refusal
	}
	x.keyID = key.ID
	if !x.places.enter(key.ID) {
		return overloaded(time.Second, "This credential has too many uploads under way. Send fewer at once.")
	}
	defer x.places.leave(key.ID)
	return x.take(ctx, key.TeamID)
}

// take reads the whole body, looks at all of it, and only then gives the first
// upload to the queue.
func (x *exchange) take(ctx context.Context, team uuid.UUID) *roomsensor.Error {
	body := body{memory: x.memory}
	defer body.release()
	if refusal := body.read(x.w, x.r); refusal != nil {
		return refusal
	}
	x.read, x.bytes = true, len(body.text)
	messages, refusal := split(body.text)
	if refusal != nil {
		return refusal
	}
	for i := range messages {
		messages[i].Team = &team
	}
	x.uploads = len(messages)
	return x.publish(ctx, messages)
}

func (x *exchange) publish(ctx context.Context, messages []queue.Message) *roomsensor.Error {
	_, err := x.Queue.Publish(ctx, messages)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			"An upload is larger than this installation takes. Send its readings in several uploads.")
	}
	x.Log.Warn().Err(err).Str("request_id", x.id).Msg("the queue did not take an upload")
	return overloaded(queueRetryAfter,
		"The queue is full or away. Send all of the request again after the seconds in Retry-After.")
}

func overloaded(after time.Duration, message string) *roomsensor.Error {
	return &roomsensor.Error{Code: roomsensor.CodeOverloaded, Message: message, RetryAfter: after}
}

func (x *exchange) answer() {
	x.status = http.StatusAccepted
	x.limitWriting()
	x.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	x.w.WriteHeader(x.status)
	_, _ = x.w.Write([]byte(`{"stored":` + strconv.Itoa(x.uploads) + "}\n")) // Who does not hear it sends again.
}

func (x *exchange) fail(refusal *roomsensor.Error) {
	x.status, x.code = refusal.Code.Status(), refusal.Code
	x.dropRest()
	x.limitWriting()
	_ = problem.Write(x.w, refusal, x.DocsURL, x.id) // Likewise.
}

// dropRest reads for a moment what is left of a body that was refused: a client
// that is still sending when the connection closes may never read the answer.
// One that asked whether to send at all has sent nothing.
func (x *exchange) dropRest() {
	if x.read {
		return
	}
	// Without a connection, as in a test, there is nothing to limit.
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(lingerTimeout))
	if x.r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, x.r.Body, maxBody) // It ends at the deadline at last.
	}
}

// limitWriting keeps a client that does not read from holding a connection.
func (x *exchange) limitWriting() {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(writeAnswer)) // Likewise.
}

// finish logs the request in one line, and keeps a panic from the client.
func (x *exchange) finish() {
	if cause := recover(); cause != nil {
		x.Log.Error().Interface("panic", cause).Bytes("stack", debug.Stack()).Str("request_id", x.id).
			Msg("a request panicked")
		if x.status == 0 {
			x.fail(roomsensor.CodeInternalError.New())
		}
	}
	took := time.Since(x.started)
	x.metrics.note(x, took)
	event := x.Log.Info().Str("request_id", x.id).Str("route", x.route()).Int("status", x.status).
		Dur("took", took).Int("bytes", x.bytes).Int("uploads", x.uploads)
	if x.keyID != "" {
		event.Str("key_id", x.keyID)
	}
	if x.code != "" {
		event.Str("code", string(x.code))
	}
	event.Msg("request")
}

// route is what logs and metrics call the path: never what the client wrote.
func (x *exchange) route() string {
	if x.r.URL.Path == uploadPath {
		return x.method() + " " + uploadPath
	}
	return "unknown"
}

func (x *exchange) method() string {
	if x.r.Method == http.MethodPost {
		return http.MethodPost
	}
	return "other"
}
