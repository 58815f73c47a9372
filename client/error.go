package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is a response of the service that is not a success.
type Error struct {
	Status     int           // HTTP status
	Code       ErrorCode     // stable; empty if the response came from a proxy in front of the service
	Message    string        // states the fix; its wording may change
	Param      string        // rejected parameter, header or field; empty if there is none
	DocURL     string        // page about the code
	RequestID  string        // to quote to the operator of the service
	RetryAfter time.Duration // pause that the service asks for; 0 if it does not
}

// Error returns the code, the message without its final period, and the request id.
func (e *Error) Error() string {
	message := strings.TrimSuffix(e.Message, ".")
	text := fmt.Sprintf("%d: %s", e.Status, message)
	if e.Code != "" {
		text = fmt.Sprintf("%s: %s", e.Code, message)
	}
	if e.RequestID != "" {
		text += " (" + e.RequestID + ")"
	}
	return text
}

// HasCode reports whether err is an *Error with the code.
func HasCode(err error, code ErrorCode) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// maxErrorBody is far above the length of any error of the service.
const maxErrorBody = 64 << 10

// readError returns the error that a response contains.
func readError(response *http.Response) *Error {
	e := &Error{
		Status: response.StatusCode, Message: http.StatusText(response.StatusCode),
		RequestID: response.Header.Get("X-Request-Id"), RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	var envelope struct {
		Error struct {
			Code    ErrorCode `json:"code"`
			Message string    `json:"message"`
			Param   string    `json:"param"` // null becomes empty
			DocURL  string    `json:"doc_url"`
		} `json:"error"`
	}
	// Without a body (HEAD), the status is all there is.
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	switch {
	case json.Unmarshal(body, &envelope) == nil && envelope.Error.Code != "":
		e.Code, e.Message = envelope.Error.Code, envelope.Error.Message
		e.Param, e.DocURL = envelope.Error.Param, envelope.Error.DocURL
	case len(body) > 0:
		e.Message += ". This is not an answer of the service. Check its address, or try again later."
	}
	return e
}

// retryAfter returns the value of a header Retry-After. Proxies may send a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
