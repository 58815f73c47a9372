package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// defaultRetryAfter is what an overloaded answer without a time of its own says.
const defaultRetryAfter = 5 * time.Second

// envelope is the body of every error (spec 7).
type envelope struct {
	Error envelopeError `json:"error"`
}

type envelopeError struct {
	Type      string          `json:"type"`
	Code      roomsensor.Code `json:"code"`
	Message   string          `json:"message"`
	Param     *string         `json:"param"`
	DocURL    string          `json:"doc_url"`
	RequestID string          `json:"request_id"`
}

// errorType is the same throughout (decision 34).
const errorType = "invalid_request_error"

// errReusedKey answers an Idempotency-Key that came with another body before; its
// status alone differs from its code's (spec 8, idempotency rule 3).
var errReusedKey = roomsensor.Invalid("Idempotency-Key",
	"This Idempotency-Key was used with a different body before. Send another key for another change.")

// answerTo is the one place where an error becomes an answer. An error that is
// none of the service's own is told to nobody.
func answerTo(err error) *roomsensor.Error {
	if answer, ok := errors.AsType[*roomsensor.Error](err); ok {
		return answer
	}
	switch {
	case errors.Is(err, roomsensor.ErrBodyDiffers):
		return errReusedKey
	case errors.Is(err, echo.ErrNotFound):
		return roomsensor.CodeNotFound.New()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// Canceled: the client is gone and reads no answer, or the process ends.
		return roomsensor.CodeOverloaded.New()
	}
	return roomsensor.CodeInternalError.New()
}

func statusOf(answer *roomsensor.Error) int {
	if answer == errReusedKey {
		return http.StatusUnprocessableEntity
	}
	return answer.Code.Status()
}

// fail writes the envelope of an error. Once a part of the answer is out there
// is no way to take it back: the connection is broken instead, so that no
// client takes the part for the whole (decision 32).
func (s *server) fail(err error, c echo.Context) {
	request := callOf(c)
	if c.Response().Committed {
		breakConnection(c)
	}
	answer := answerTo(err)
	clearContent(c.Response().Header())
	setErrorHeaders(c.Response().Header(), answer)
	body, err := encodeJSON(s.envelopeOf(answer, request.requestID))
	if err != nil {
		breakConnection(c) // The envelope is made of texts: it cannot fail to encode.
	}
	request.writeBody(statusOf(answer), body)
}

func (s *server) envelopeOf(answer *roomsensor.Error, requestID string) envelope {
	e := envelopeError{
		Type:      errorType,
		Code:      answer.Code,
		Message:   answer.Message,
		DocURL:    s.docsURL + "/errors/" + string(answer.Code),
		RequestID: requestID,
	}
	if answer.Param != "" {
		e.Param = &answer.Param
	}
	return envelope{e}
}

// clearContent removes what was said of a body that will not be sent.
func clearContent(h http.Header) {
	for _, name := range []string{
		"Content-Disposition", "Content-Encoding", "Content-Length", "Etag",
		"X-Row-Count", "Idempotent-Replayed",
	} {
		h.Del(name)
	}
	h.Set("Content-Type", jsonType)
}

func setErrorHeaders(h http.Header, answer *roomsensor.Error) {
	switch answer.Code.Status() {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		h.Set("Retry-After", seconds(answer.RetryAfter))
	case http.StatusServiceUnavailable:
		wait := answer.RetryAfter
		if wait <= 0 {
			wait = defaultRetryAfter
		}
		h.Set("Retry-After", seconds(wait))
	}
}

// seconds prints a length in whole seconds, rounded up, 1 at least.
func seconds(d time.Duration) string {
	whole := (d + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(1, whole)), 10)
}

// encodeJSON is json.Marshal without the escapes for HTML.
func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
