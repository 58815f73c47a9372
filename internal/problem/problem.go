// Package problem writes errors as the service's clients know them: the
// envelope of spec 7 and the headers that belong to a status.
package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// defaultRetryAfter is what a 503 says that has no better idea.
const defaultRetryAfter = 5 * time.Second

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

// Write answers with an error. docsURL is the address under which the pages of
// the codes are (spec 7, doc_url).
func Write(w http.ResponseWriter, e *roomsensor.Error, docsURL, requestID string) error {
	b := body{
		Type: "invalid_request_error", Code: e.Code, Message: e.Message,
		DocURL: docsURL + "/errors/" + string(e.Code), RequestID: requestID,
	}
	if e.Param != "" {
		b.Param = &e.Param
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	switch e.Code.Status() {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	w.WriteHeader(e.Code.Status())
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(envelope{b}); err != nil {
		return fmt.Errorf("writing an error: %w", err)
	}
	return nil
}

// seconds rounds up, so that waiting as long as it says is enough.
func seconds(d time.Duration) int {
	if d <= 0 {
		d = defaultRetryAfter
	}
	return int((d + time.Second - 1) / time.Second)
}
