package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const authorizationHeader = "Authorization"

// guard wraps a handler with the checks that every operation needs, in the order of decision 22: key, rate, scope.
func (s *server) guard(r route) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := callOf(ec)
		ctx := ec.Request().Context()
		if r.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, r.timeout)
			defer cancel()
		}
		position, err := s.admit(ctx, c, r.keyInURL)
		if err != nil {
			return err
		}
		ctx = roomsensor.WithPosition(ctx, position)
		if r.scope == roomsensor.ScopeReadWrite && c.key.Scope != roomsensor.ScopeReadWrite {
			return roomsensor.CodeInsufficientScope.New()
		}
		if err := httpedge.CheckBody(c.Request()); err != nil {
			return err
		}
		return r.handle(ctx, c)
	}
}

// admit authenticates a request, records the use of its key and counts it for the rate limit. The count runs on the
// primary for every request, also with a key in memory. It returns the position that the answer must include (decision
// 43 a). The lookup of the key and the count may together take half of the time of a request.
func (s *server) admit(ctx context.Context, c *call, keyInURL bool) (position roomsensor.Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout/2)
	defer cancel()
	text, err := keyText(c.Request(), keyInURL)
	if err != nil {
		return position, err
	}
	if c.key, err = s.keys.Authenticate(ctx, text); err != nil {
		return position, err
	}
	s.uses.Record(c.key.ID, c.Request())
	return s.rate.count(ctx, c.Response().Header(), c.key.ID)
}

// recheck returns an error if the key of a long request is no longer valid. Without the database, it stays as it was.
func (s *server) recheck(ctx context.Context, c *call) error {
	text, err := keyText(c.Request(), true) // The request was admitted with it.
	if err != nil {
		return err
	}
	_, err = s.keys.Authenticate(ctx, text)
	if refused, ok := errors.AsType[*roomsensor.Error](err); ok && refused.Code.Status() == http.StatusUnauthorized {
		return err
	}
	return nil
}

// keyText returns the text of the API key (decision 24): from the header or, if keyInURL is set and there is no header,
// from the URL.
func keyText(r *http.Request, keyInURL bool) (string, error) {
	headers := r.Header.Values(authorizationHeader)
	if len(headers) == 0 && keyInURL {
		return keyTextInQuery(r.URL.RawQuery)
	}
	return httpedge.APIKeyCodes().Bearer(headers)
}

// keyTextInQuery returns the value of the parameter key, even if the rest of the query does not decode: authentication
// precedes the check of the parameters (decision 22).
func keyTextInQuery(query string) (string, error) {
	found, key := 0, ""
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != keyParameter {
			continue
		}
		found++
		// A value that does not decode stays empty, and an empty key is invalid.
		if decoded, err := url.QueryUnescape(value); err == nil && !strings.Contains(value, ";") {
			key = decoded
		}
	}
	switch found {
	case 0:
		return "", roomsensor.CodeAPIKeyMissing.New()
	case 1:
		return key, nil
	}
	return "", httpedge.APIKeyCodes().InvalidWith("The parameter key was sent more than once. Send it once.")
}
