package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

const (
	// uploadPath is the only route of the receiver.
	uploadPath = "/uploads"
	// maxPerKey is the limit of requests of one key at the same time. A whole fleet may share a key.
	maxPerKey = 128
	// keyRetryAfter is the Retry-After of a request over maxPerKey.
	keyRetryAfter = time.Second
	// queueRetryAfter is the Retry-After while the stream is full or unavailable: a purge or a failover takes about as
	// long.
	queueRetryAfter = 10 * time.Second
	// writeTimeout limits the sending of a response of a few hundred bytes.
	writeTimeout = 15 * time.Second
	// lingerTimeout is how long the rest of a refused body is read; see discardBody.
	lingerTimeout = time.Second
	// maxLingering is how many refused bodies are read at the same time.
	maxLingering = 16
)

// request is one request to the receiver, with its access-log entry.
type request struct {
	*Receiver
	w        http.ResponseWriter
	r        *http.Request
	log      httpedge.AccessEntry
	bodyRead bool // to its end
	receipt  receipt
}

// receipt is the response to uploads that the stream has stored (decision 46 b).
type receipt struct {
	Stored        int      `json:"stored"` // uploads
	Readings      int      `json:"readings"`
	IgnoredFields []string `json:"ignored_fields"`
}

// ServeHTTP answers POST /uploads. Every other path or method is an error.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, httpRequest *http.Request) {
	q := &request{Receiver: r, w: w, r: httpRequest}
	began := time.Now()
	q.log = httpedge.AccessEntry{
		RequestID: httpedge.NewRequestID(), Route: httpedge.UnmatchedRoute, Method: httpRequest.Method, Rows: -1,
	}
	w.Header().Set(httpedge.RequestIDHeader, q.log.RequestID)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := panics.Recover(q.handle); err != nil {
		q.fail(err)
	} else {
		q.confirm()
	}
	q.log.Duration = time.Since(began)
	r.metrics.observe(&q.log)
	q.log.Log(r.Log)
}

// handle authenticates the request and publishes its uploads. It returns nil only after the stream has stored all of
// them.
func (q *request) handle() error {
	if q.r.URL.Path != uploadPath {
		return unknownPath(q.r.URL.Path)
	}
	q.log.Route = uploadPath
	if q.r.Method != http.MethodPost {
		q.w.Header().Set("Allow", http.MethodPost)
		return roomsensor.NewError(roomsensor.CodeMethodNotAllowed, "", "This path supports POST only.")
	}
	text, err := httpedge.IngestKeyCodes().Bearer(q.r.Header.Values("Authorization"))
	if err != nil {
		return err
	}
	key, err := q.auth.Authenticate(q.r.Context(), text)
	if err != nil {
		return err
	}
	q.log.KeyID = key.ID
	if err := q.rates.admit(&key); err != nil {
		return err
	}
	release, ok := q.limiter.Acquire(key.ID)
	if !ok {
		return httpedge.Overloaded(keyRetryAfter,
			"This credential has too many uploads in progress. Send fewer at the same time.")
	}
	defer release()
	return q.takeBody(&key)
}

// unknownPath returns the error for a path other than that of uploads. It does not repeat a part of the path.
func unknownPath(path string) error {
	hint := "There is no such path on the receiver of uploads. "
	switch {
	case strings.TrimRight(path, "/") == uploadPath:
		hint = "There must not be a slash at the end of the path. "
	case strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/docs"):
		hint = "This is the receiver of uploads, whose path has no version. The API has its own address. "
	}
	return roomsensor.NewError(roomsensor.CodeNotFound, "", hint+"Send uploads with POST "+uploadPath+".")
}

// takeBody reads and checks the whole body before it publishes the first upload.
func (q *request) takeBody(key *roomsensor.Key) error {
	memory := q.memory.open(key)
	defer memory.close()
	text, err := readBody(q.w, q.r, memory)
	q.bodyRead = err == nil
	if refusal := q.rates.charge(key, len(text)); err == nil { // What is refused costs bytes, too.
		err = refusal
	}
	if err != nil {
		return err
	}
	q.log.Bytes = int64(len(text))
	u, err := split(text, memory)
	if err != nil {
		return err
	}
	for i := range u.messages {
		u.messages[i].Team = &key.TeamID
	}
	q.log.Rows = len(u.messages)
	return q.publish(q.r.Context(), u)
}

func (q *request) publish(ctx context.Context, u *uploads) error {
	_, err := q.Queue.Publish(ctx, u.messages)
	switch {
	case err == nil:
		q.metrics.ignored.Add(&u.ignored)
		q.receipt = receipt{len(u.messages), u.readings, u.ignored.Names()}
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			"An upload is larger than this installation accepts. Send its readings in several uploads.")
	}
	return fmt.Errorf("%w: %w", httpedge.Overloaded(queueRetryAfter,
		"The queue is full or unavailable. Send the whole request again after the seconds in Retry-After."), err)
}

// confirm sends 202 with the receipt.
func (q *request) confirm() {
	q.log.Status = http.StatusAccepted
	q.limitWriting()
	q.w.Header().Set("Content-Type", httpedge.ContentType)
	q.w.WriteHeader(q.log.Status)
	text, _ := json.Marshal(q.receipt) // The names are valid UTF-8.
	// A client that misses the response retries, and the same readings again change nothing.
	_, _ = q.w.Write(append(text, '\n'))
}

func (q *request) fail(err error) {
	public := httpedge.PublicError(err)
	q.log.Status = public.Code.Status()
	q.log.Fail(err, public, q.r, q.clients(q.r))
	if errors.Is(q.r.Context().Err(), context.Canceled) {
		q.log.Status = httpedge.StatusClientGone
	}
	q.discardBody()
	q.limitWriting()
	_ = httpedge.WriteError(q.w, public, q.DocsURL, q.log.RequestID) // A client that misses the response retries.
}

// discardBody reads the rest of a refused body for up to lingerTimeout: a client that is still sending when the
// connection closes may never read the response. A client that sent Expect: 100-continue has not sent a body yet.
// Beyond maxLingering, the connection closes at once, so that a flood of refused bodies costs little.
func (q *request) discardBody() {
	if q.bodyRead {
		return
	}
	// In a test there may be no connection, and nothing to limit.
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(lingerTimeout))
	if q.r.Header.Get("Expect") != "" {
		return
	}
	select {
	case q.lingering <- struct{}{}:
		defer func() { <-q.lingering }()
		_, _ = io.CopyN(io.Discard, q.r.Body, maxBody) // It ends at the read deadline at the latest.
	default:
	}
}

// limitWriting ends the connection of a client that does not read the response.
func (q *request) limitWriting() {
	// In a test there may be no connection, and nothing to limit.
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(writeTimeout))
}
