package api

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// errReusedKey answers an Idempotency-Key that was used with another body. Only here does the status differ from that
// of the code: 422 (spec 8, idempotency rule 3).
var errReusedKey = roomsensor.Invalid("Idempotency-Key",
	"This Idempotency-Key was used before with a different body. Send a new key for each change.")

// publicError returns the error that a client may see. It is the only place where an error becomes a response.
func publicError(err error) *roomsensor.Error {
	if errors.Is(err, roomsensor.ErrBodyDiffers) {
		return errReusedKey
	}
	return httpedge.PublicError(err)
}

func statusOf(public *roomsensor.Error) int {
	if public == errReusedKey {
		return http.StatusUnprocessableEntity
	}
	return public.Code.Status()
}

// fail sends the envelope of an error. A response that has begun cannot be changed any more; its connection is broken,
// so that no client takes a part of an export for the whole (decision 32).
func (s *server) fail(err error, ec echo.Context) {
	c := callOf(ec)
	if c.Response().Committed {
		c.abort()
	}
	public := publicError(err)
	removeContentHeaders(c.Response().Header())
	if public.Code.Status() == http.StatusUnauthorized { // The request may have been counted before its key was refused.
		removeRateHeaders(c.Response().Header())
	}
	c.setHeader("Cache-Control", "no-store") // The message and doc_url belong to this request.
	httpedge.SetErrorHeaders(c.Response().Header(), public)
	body, err := httpedge.ErrorBody(public, s.site.Docs(c.Request()), c.requestID)
	if err == nil {
		err = c.writeBody(statusOf(public), body)
	}
	if err != nil {
		c.abort()
	}
}

// removeContentHeaders removes the headers that describe a body which will not be sent.
func removeContentHeaders(h http.Header) {
	for _, name := range []string{
		"Accept-Ranges", "Content-Disposition", "Content-Encoding", "Content-Length", "Etag",
		"X-Row-Count", "Idempotent-Replayed",
	} {
		h.Del(name)
	}
	h["Vary"] = slices.DeleteFunc(h["Vary"], func(name string) bool { return name == httpedge.AcceptEncoding })
	if len(h["Vary"]) == 0 {
		h.Del("Vary")
	}
}
