package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

const (
	// maxPerKey is the limit of requests of one key at the same time. A whole fleet may share a key.
	maxPerKey = 128
	// keyRetryAfter is the Retry-After of a request over maxPerKey.
	keyRetryAfter = time.Second
	// lingerTimeout limits the reading of the rest of a refused body; see discardBody.
	lingerTimeout = time.Second
	// maxLingering is how many refused bodies are read at the same time.
	maxLingering = 16
)

// route is a path of the receiver.
type route struct {
	path       string
	methods    []string
	parameters []string
	serve      func(q *request, key *roomsensor.Key, query httpedge.Query) error
	open       func(q *request) error // serves without a credential, instead of serve
	ofSource   bool                   // the path names a source, whose format decides the parameters
	write      bool                   // the path is one of line protocol only
}

var routes = []route{
	{
		path: "/uploads", methods: []string{http.MethodPost},
		parameters: []string{dryRunParameter},
		serve:      (*request).takeUploads,
	},
	{
		path: "/rejects", methods: []string{http.MethodGet, http.MethodHead},
		parameters: []string{
			reasonParameter, hardwareIDParameter, unitParameter, sinceParameter,
			httpedge.CursorParameter, httpedge.LimitParameter,
		},
		serve: (*request).listRejects,
	},
	{
		path: sourcePath, methods: []string{http.MethodPost}, ofSource: true, serve: (*request).takeMessage,
	},
	{
		path: sourcePath + "/write", methods: []string{http.MethodPost}, ofSource: true, write: true,
		serve: (*request).takeMessage,
	},
	{
		path: sourcePath + "/api/v2/write", methods: []string{http.MethodPost}, ofSource: true, write: true,
		serve: (*request).takeMessage,
	},
	{path: sourcePath + "/ping", methods: []string{http.MethodGet, http.MethodHead}, open: (*request).ping},
	{path: sourcePath + "/health", methods: []string{http.MethodGet, http.MethodHead}, open: (*request).health},
}

// request is one request to the receiver, with its access-log entry.
type request struct {
	*Receiver
	w        *response
	r        *http.Request
	log      httpedge.AccessEntry
	bodyRead bool         // to its end
	recheck  func() error // returns an error if the credential is no longer valid
}

// response remembers the status of a response.
type response struct {
	http.ResponseWriter
	status int
}

func (w *response) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP answers a request. Every path or method that routes does not have is an error.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, httpRequest *http.Request) {
	httpRequest, span := httpedge.BeginSpan(r.Tracer, httpRequest)
	q := &request{Receiver: r, w: &response{ResponseWriter: w}, r: httpRequest}
	began := time.Now()
	r.metrics.Begin()
	q.log = httpedge.AccessEntry{
		RequestID: httpedge.NewRequestID(), TraceID: span.TraceID(), Route: httpedge.UnmatchedRoute,
		Method: httpRequest.Method, Rows: -1,
	}
	w.Header().Set(httpedge.RequestIDHeader, q.log.RequestID)
	w.Header().Set("Cache-Control", "no-store")
	httpedge.SetSecurityHeaders(w.Header())
	if err := panics.Recover(q.handle); err != nil {
		q.fail(err)
	} else {
		q.log.Status = q.w.status
	}
	q.log.Duration = time.Since(began)
	r.metrics.End(&q.log)
	q.log.Log(r.access)
	span.End(&q.log)
}

// handle checks path and method, and serves the request.
func (q *request) handle() error {
	path, sourceID := pathTemplate(q.r.URL.Path)
	at := slices.IndexFunc(routes, func(known route) bool { return known.path == path })
	if at < 0 {
		return unknownPath(q.r.URL.Path)
	}
	known := &routes[at]
	q.log.Route = known.path
	if !slices.Contains(known.methods, q.r.Method) {
		q.w.Header().Set("Allow", strings.Join(known.methods, ", "))
		return roomsensor.NewError(roomsensor.CodeMethodNotAllowed, "",
			"This path supports "+httpedge.Enumerate(known.methods)+" only.")
	}
	if known.open != nil {
		return known.open(q)
	}
	err := q.serve(known, sourceID)
	if known.ofSource {
		err = asTemporary(err)
	}
	return err
}

// serve checks credential, share and parameters, in this order, and serves the request.
func (q *request) serve(known *route, sourceID uuid.UUID) error {
	key, err := q.authenticate(known)
	if err != nil {
		return err
	}
	if err := q.rates.admit(&key); err != nil {
		return err
	}
	if err := checkSource(&key, known, sourceID); err != nil {
		return err
	}
	q.KeyUses.Record(key.ID, q.r)
	q.recheck = func() error { _, err := q.authenticate(known); return err }
	parameters := known.parameters
	if known.ofSource {
		parameters = sourceParameters(key.Source.Format)
	}
	if err := httpedge.CheckBody(q.r); err != nil {
		return err
	}
	query, err := httpedge.ParseQuery(q.r.URL.RawQuery, parameters...)
	if err != nil {
		return err
	}
	held, err := q.limiter.Try(fairshare.Owner{Key: key.ID}, 1)
	if err != nil {
		return err
	}
	defer held.Release()
	return known.serve(q, &key, query)
}

// authenticate returns the valid credential of a request. That of a source that is disabled counts as revoked.
func (q *request) authenticate(known *route) (key roomsensor.Key, err error) {
	var text string
	if known.ofSource {
		text, err = q.sourceCredential()
	} else {
		text, err = httpedge.IngestKeyCodes().Bearer(q.r.Header.Values("Authorization"))
	}
	if err == nil {
		key, err = q.auth.Authenticate(q.r.Context(), text)
	}
	if err != nil {
		return key, err
	}
	q.log.KeyID = key.ID
	if key.Source != nil && key.Source.Format == "" {
		return key, roomsensor.NewError(roomsensor.CodeIngestKeyRevoked, "",
			"The source of this credential is disabled or was deleted. An admin of the team can enable it.")
	}
	return key, nil
}

// unknownPath returns the error for a path that routes does not have. It does not repeat a part of the path.
func unknownPath(path string) error {
	hint := "There is no such path on the receiver of uploads. "
	switch {
	case slices.ContainsFunc(routes, func(known route) bool { return known.path == strings.TrimRight(path, "/") }):
		hint = "There must not be a slash at the end of the path. "
	case strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/docs"):
		hint = "This is the receiver of uploads, whose paths have no version. The API has its own address. "
	}
	return roomsensor.NewError(roomsensor.CodeNotFound, "",
		hint+"Send uploads with POST /uploads, messages of a source with POST /sources/{source_id}, and list rejects with "+
			"GET /rejects.")
}

// answer sends a JSON object.
func (q *request) answer(status int, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding a response: %w", err)
	}
	q.w.Header().Set("Content-Type", httpedge.ContentType)
	q.w.WriteHeader(status)
	// A client that misses the response retries, and the same readings again change nothing.
	_, _ = q.w.Write(append(text, '\n'))
	return nil
}

func (q *request) fail(err error) {
	public := httpedge.PublicError(err)
	q.log.Status = public.Code.Status()
	q.log.Fail(err, public, q.r, q.clients(q.r))
	if errors.Is(q.r.Context().Err(), context.Canceled) {
		q.log.Status = httpedge.StatusClientGone
	}
	q.discardBody()
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
		_, _ = io.CopyN(io.Discard, q.r.Body, MaxBody) // It ends at the read deadline at the latest.
	default:
	}
}
