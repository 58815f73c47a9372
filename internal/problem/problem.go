// Package problem writes errors as the service's clients know them: the
// envelope of spec 7, the headers that belong to a status, and the request id
// that every response carries.
package problem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// ContentType is that of every error.
const ContentType = "application/json; charset=utf-8"

const (
	// errorType is the same throughout (decision 34).
	errorType = "invalid_request_error"
	// defaultRetryAfter is what a 503 says that has no better idea.
	defaultRetryAfter = 5 * time.Second
)

type envelope struct {
	Error body `json:"error"`
}

type body struct {
	Type      string          `json:"type"`
	Code      roomsensor.Code `json:"code"`
	Message   string          `json:"message"`
	Param     *string         `json:"param"`
	DocURL    string          `json:"doc_url"`
	RequestID string          `json:"request_id"`
}

// Body is the envelope of an error. docsURL is the address under which the
// pages of the codes are (spec 7, doc_url).
func Body(e *roomsensor.Error, docsURL, requestID string) ([]byte, error) {
	b := body{
		Type: errorType, Code: e.Code, Message: e.Message,
		DocURL: docsURL + "/errors/" + string(e.Code), RequestID: requestID,
	}
	if e.Param != "" {
		b.Param = &e.Param
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(envelope{b}); err != nil {
		return nil, fmt.Errorf("encoding an error: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// SetHeaders sets the headers that belong to an error's status.
func SetHeaders(h http.Header, e *roomsensor.Error) {
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

// Write answers with an error.
func Write(w http.ResponseWriter, e *roomsensor.Error, docsURL, requestID string) error {
	text, err := Body(e, docsURL, requestID)
	if err != nil {
		return err
	}
	SetHeaders(w.Header(), e)
	w.WriteHeader(e.Code.Status())
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing an error: %w", err)
	}
	return nil
}

// Seconds prints a length in whole seconds, 1 at least, rounded up, so that
// waiting as long as it says is enough.
func Seconds(d time.Duration) string {
	whole := (d + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(1, whole)), 10)
}
