package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/problem"
	"roomsensor/internal/roomsensor"
)

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
	problem.SetHeaders(c.Response().Header(), answer)
	body, err := problem.Body(answer, s.docsURL, request.requestID)
	if err != nil {
		breakConnection(c) // The envelope is made of texts: it cannot fail to encode.
	}
	request.writeBody(statusOf(answer), body)
}

// clearContent removes what was said of a body that will not be sent.
func clearContent(h http.Header) {
	for _, name := range []string{
		"Content-Disposition", "Content-Encoding", "Content-Length", "Etag",
		"X-Row-Count", "Idempotent-Replayed", "Vary",
	} {
		h.Del(name)
	}
}

// encodeJSON is json.Marshal without the escapes for HTML.
func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
