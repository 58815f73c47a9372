package httpedge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// ContentType is the content type of every error response and every JSON response.
const ContentType = "application/json; charset=utf-8"

const (
	// errorType is the type of every error (decision 34).
	errorType = "invalid_request_error"
	// defaultRetryAfter is the Retry-After of a 503 whose error names no other.
	defaultRetryAfter = 5 * time.Second
)

type envelope struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Type      string          `json:"type"`
	Code      roomsensor.Code `json:"code"`
	Message   string          `json:"message"`
	Param     *string         `json:"param"`
	DocURL    string          `json:"doc_url"`
	RequestID string          `json:"request_id"`
}

// PublicError returns the error that a client may see. An unknown error becomes internal_error, and its text is never
// sent. An error of a deadline or of a canceled context becomes overloaded: either the service was too slow, or the
// client has left and reads no response, or the process is stopping.
func PublicError(err error) *roomsensor.Error {
	if public, ok := errors.AsType[*roomsensor.Error](err); ok {
		return public
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return roomsensor.CodeOverloaded.New()
	}
	return roomsensor.CodeInternalError.New()
}

// ErrorBody returns the envelope of an error (spec 7). docsURL is the URL of the docs pages without a slash at its end;
// the page of the error's code lies below it.
func ErrorBody(e *roomsensor.Error, docsURL, requestID string) ([]byte, error) {
	b := errorBody{
		Type: errorType, Code: e.Code, Message: e.Message,
		DocURL: docsURL + "/errors/" + string(e.Code), RequestID: requestID,
	}
	if e.Param != "" {
		b.Param = &e.Param
	}
	return EncodeJSON(envelope{b})
}

// EncodeJSON is json.Marshal without the escapes for HTML.
func EncodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a response: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// SetErrorHeaders sets the headers that belong to an error's status.
func SetErrorHeaders(h http.Header, e *roomsensor.Error) {
	h.Set("Content-Type", ContentType)
	switch e.Code.Status() {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		h.Set("Retry-After", Seconds(e.RetryAfter))
	case http.StatusServiceUnavailable:
		wait := e.RetryAfter
		if wait <= 0 {
			wait = defaultRetryAfter
		}
		h.Set("Retry-After", Seconds(wait))
	}
}

// WriteError sends an error with its status, headers and envelope.
func WriteError(w http.ResponseWriter, e *roomsensor.Error, docsURL, requestID string) error {
	text, err := ErrorBody(e, docsURL, requestID)
	if err != nil {
		return err
	}
	SetErrorHeaders(w.Header(), e)
	w.WriteHeader(e.Code.Status())
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing an error: %w", err)
	}
	return nil
}

// Overloaded returns an overloaded error with its Retry-After.
func Overloaded(retryAfter time.Duration, message string) *roomsensor.Error {
	return &roomsensor.Error{Code: roomsensor.CodeOverloaded, Message: message, RetryAfter: retryAfter}
}

// Wait returns a duration for a message: the seconds in Retry-After.
func Wait(d time.Duration) string {
	if seconds := Seconds(d); seconds != "1" {
		return seconds + " seconds"
	}
	return "1 second"
}

// Seconds prints a duration in whole seconds, at least 1, rounded up: a client that waits as long has waited enough.
func Seconds(d time.Duration) string {
	whole := (d + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(1, whole)), 10)
}
