package receiver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/mapping"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

// The paths of a source (A10.3, A10.4).
const (
	sourcePrefix = "/sources/"
	sourcePath   = sourcePrefix + "{source_id}"
)

// The parameters of a source. A writer of line protocol sends more, which mean nothing here.
const (
	keyParameter       = "key"
	passwordParameter  = "p" // a credential, in line protocol
	precisionParameter = "precision"
	eventParameter     = "event" // of ChirpStack
)

var (
	messageParameters = []string{keyParameter, dryRunParameter, eventParameter}
	writeParameters   = []string{
		keyParameter, dryRunParameter, precisionParameter, passwordParameter, "org", "bucket", "db", "rp", "u", "consistency",
	}
)

// pathTemplate returns the path of a route that a path belongs to, and the source that it names.
func pathTemplate(path string) (template string, sourceID uuid.UUID) {
	below, ok := strings.CutPrefix(path, sourcePrefix)
	if !ok || below == "" {
		return path, uuid.Nil
	}
	name, rest, nested := strings.Cut(below, "/")
	if id, err := uuid.Parse(name); err == nil && len(name) == len(id.String()) {
		sourceID = id
	}
	if nested {
		rest = "/" + rest
	}
	return sourcePath + rest, sourceID
}

// sourceCredential returns the text of the credential of a request to a source (A10.3): of the header Authorization
// with the scheme Bearer, Token or Basic, or of the parameter key, or p.
func (q *request) sourceCredential() (string, error) {
	codes := httpedge.IngestKeyCodes()
	var sent []string
	headers := q.r.Header.Values("Authorization")
	if len(headers) > 0 {
		text, ok := authorizationKey(headers[0])
		if !ok || len(headers) > 1 {
			return "", codes.InvalidWith("The header Authorization must be sent once, with the scheme Bearer, Token or Basic. " +
				"Or send the credential in the URL, as key=<INGEST_KEY>.")
		}
		sent = append(sent, text)
	}
	parameters, _ := url.ParseQuery(q.r.URL.RawQuery) // Checked later.
	sent = append(sent, parameters[keyParameter]...)
	sent = append(sent, parameters[passwordParameter]...)
	sent = slices.DeleteFunc(sent, func(text string) bool { return text == "" })
	slices.Sort(sent)
	switch sent = slices.Compact(sent); len(sent) {
	case 0:
		return "", roomsensor.NewError(roomsensor.CodeIngestKeyMissing, "", "Send the credential of the source in the "+
			"header Authorization: Bearer <INGEST_KEY>, or in the URL, as key=<INGEST_KEY>.")
	case 1:
		return sent[0], nil
	}
	return "", codes.InvalidWith("The request has several different credentials. Send one.")
}

// authorizationKey returns the credential in the header Authorization.
func authorizationKey(header string) (text string, ok bool) {
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.Trim(text, " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"), strings.EqualFold(scheme, "Token"):
		return text, true
	case strings.EqualFold(scheme, "Basic"):
		pair, err := base64.StdEncoding.DecodeString(text)
		_, password, found := strings.Cut(string(pair), ":")
		return password, err == nil && found
	}
	return "", false
}

// checkSource checks that a credential may be used at a path: that of a source only at this source, and every other one
// only elsewhere (A10.1). id is nil for the other paths.
func checkSource(key *roomsensor.Key, route *route, id uuid.UUID) error {
	switch {
	case key.Source == nil && !route.ofSource:
		return nil
	case key.Source == nil:
		return roomsensor.NewError(roomsensor.CodeInsufficientScope, "",
			"This upload credential is for POST /uploads. Send a credential of the source.")
	case !route.ofSource || key.Source.ID != id:
		return roomsensor.NewError(roomsensor.CodeInsufficientScope, "",
			"This credential belongs to a source and is valid at POST /sources/"+key.Source.ID.String()+" only.")
	case route.write && !isLineProtocol(key.Source.Format):
		return roomsensor.NewError(roomsensor.CodeNotFound, "",
			"Only a source for line protocol has this path. Post to /sources/"+id.String()+".")
	}
	return nil
}

// sourceParameters returns the parameters of a source with a format.
func sourceParameters(format string) []string {
	if isLineProtocol(format) {
		return writeParameters
	}
	return messageParameters
}

// isLineProtocol reports whether the messages of a format are line protocol.
func isLineProtocol(format string) bool {
	f, ok := mapping.FormatNamed(format)
	return ok && f.Lines
}

// asTemporary returns an error of a source: what passes by itself is 503, because several senders never repeat after a
// 429 (A10.6).
func asTemporary(err error) error {
	public, ok := errors.AsType[*roomsensor.Error](err)
	if !ok || public.Code.Status() != http.StatusTooManyRequests {
		return err
	}
	return &roomsensor.Error{
		Code: roomsensor.CodeOverloaded, Message: public.Message, RetryAfter: public.RetryAfter, Limit: public.Limit,
	}
}

// messageReceipt is the response to a message that the stream has stored (A10.6).
type messageReceipt struct {
	Stored int `json:"stored"` // messages
}

// takeMessage answers POST /sources/{source_id} after the stream has stored the body, at whose content it does not look
// (A10.5), or with the report of a dry run.
func (q *request) takeMessage(key *roomsensor.Key, query httpedge.Query) error {
	message := queue.Message{Team: &key.TeamID, Source: &key.Source.ID}
	if text := query.Get(precisionParameter); text != nil {
		if _, ok := mapping.ParsePrecision(*text); !ok {
			return roomsensor.Invalid(precisionParameter,
				"precision must be ns, us, ms or s. Nothing of the request was stored.")
		}
		message.Precision = *text
	}
	dryRun, err := isDryRun(query)
	if err != nil {
		return err
	}
	take := q.publishMessage
	if dryRun {
		take = q.previewMessage
	}
	result, err := q.withBody(key, roomsensor.MaxUploadBytes, func(text []byte, _ *fairshare.Held) (any, error) {
		message.Text, q.log.Rows = text, min(1, len(text))
		return take(&message)
	})
	switch {
	case err != nil:
		return err
	case !dryRun && isLineProtocol(key.Source.Format):
		q.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return q.answer(http.StatusOK, result)
}

// publishMessage stores a message in the stream. An empty one is not stored (A10.5).
func (q *request) publishMessage(message *queue.Message) (any, error) {
	if len(message.Text) == 0 {
		return &messageReceipt{}, nil
	}
	if _, err := q.Queue.Publish(q.r.Context(), []queue.Message{*message}); err != nil {
		return nil, publishError(err)
	}
	q.metrics.count(1, len(message.Text))
	return &messageReceipt{1}, nil
}

// previewMessage returns what a worker would make of a message now. It publishes and stores nothing.
func (q *request) previewMessage(message *queue.Message) (preview any, err error) {
	arrival := roomsensor.Arrival{
		At: time.Now().UTC().Truncate(time.Microsecond), Team: message.Team, Source: message.Source,
		Precision: message.Precision,
	}
	err = q.useDatabase(*message.Team, func(ctx context.Context) error {
		sources, err := q.Database.Sources(ctx, []uuid.UUID{*message.Source})
		if err != nil {
			return err
		}
		s := sources[*message.Source]
		m, err := source.Compile(s.Format, s.Mapping)
		if err != nil {
			return roomsensor.Invalid("", fmt.Sprintf("The mapping of the source is not valid: %v", err))
		}
		dryRunParser <- struct{}{}
		defer func() { <-dryRunParser }()
		preview, err = source.NewPreview(ctx, q.Database, m, message.Text, &arrival)
		return err
	})
	return preview, err
}

// ping answers a writer of line protocol that asks whether the service is there (A10.4).
func (q *request) ping() error {
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// health is ping for writers that read the body.
func (q *request) health() error {
	return q.answer(http.StatusOK, struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}{"roomsensor", "pass"})
}
