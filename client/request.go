package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const (
	// attemptTimeout limits one attempt of a request, except an export, and without the time that the body of an upload
	// takes. The API ends a request after 10 seconds.
	attemptTimeout = 30 * time.Second
	// minBackoff and maxBackoff limit the pause before a retry when the service does not ask for one. It doubles with
	// each attempt.
	minBackoff = 250 * time.Millisecond
	maxBackoff = 15 * time.Second
)

// Retry is a request that is about to be sent again.
type Retry struct {
	Method, Path string // such as GET and /devices
	Attempt      int    // number of the attempt that failed, from 1
	Err          error  // why it failed; an *Error if the service responded
	Pause        time.Duration
}

// request is an operation of the API. Every request can be sent again: GET and HEAD change nothing, and a PATCH has an
// Idempotency-Key.
type request struct {
	method, path string // below /v1
	query        url.Values
	header       http.Header
	body         []byte
	timeout      time.Duration // of one attempt; 0 means attemptTimeout
	patient      bool          // repeat until the context ends, whatever WithMaxAttempts says
}

// get returns a GET of a path with a query.
func get(path string, query url.Values) *request {
	return &request{method: http.MethodGet, path: path, query: query}
}

// fetch sends a request and decodes the JSON of its response.
func fetch[T any](ctx context.Context, c *Client, r *request) (result T, err error) {
	timeout := r.timeout
	if timeout == 0 {
		timeout = attemptTimeout
	}
	err = c.retry(ctx, r, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		response, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return fmt.Errorf("reading the response to %s %s: %w", r.method, r.path, err)
		}
		var decoded T // A new one for each attempt, because a failed one may have filled it in part.
		if err := json.Unmarshal(body, &decoded); err != nil {
			return &permanentError{fmt.Errorf("decoding the response to %s %s: %w", r.method, r.path, err)}
		}
		result = decoded
		return nil
	})
	return result, err
}

// open sends a request and returns the response, whose body the caller closes. No deadline applies to the body.
func (c *Client) open(ctx context.Context, r *request) (response *http.Response, err error) {
	err = c.retry(ctx, r, func(ctx context.Context) error {
		response, err = c.send(ctx, r) //nolint:bodyclose // The caller closes it.
		return err
	})
	return response, err
}

// send sends a request once. A status other than 2xx is an *Error.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, &permanentError{fmt.Errorf("creating a request: %w", err)}
	}
	maps.Copy(request.Header, r.header)
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", c.userAgent)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the method and the URL, which has no key.
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = response.Body.Close() }()
		return nil, readError(response)
	}
	return response, nil
}

// permanentError is an error after which the same request cannot succeed.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// retry calls attempt until it succeeds, its error is permanent, the attempts are used up, or ctx ends.
func (c *Client) retry(ctx context.Context, r *request, attempt func(context.Context) error) error {
	for n := 1; ; n++ {
		err := attempt(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !isTransient(err) || n >= c.maxAttempts && !r.patient:
			return err
		}
		pause := pauseAfter(err, n)
		if pause > c.maxWait && !r.patient {
			return err
		}
		c.onRetry(Retry{Method: r.method, Path: r.path, Attempt: n, Err: err, Pause: pause})
		if ended := c.sleep(ctx, pause); ended != nil {
			return fmt.Errorf("%w; the last attempt failed: %w", ended, err)
		}
	}
}

// isTransient reports whether the same request may succeed later.
func isTransient(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	_, permanent := errors.AsType[*permanentError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	return !permanent && !certificate
}

// pauseAfter returns the pause after attempt n. Clients that failed together do not come back together: a pause that
// the service asked for becomes up to a tenth longer, and any other one is random.
func pauseAfter(err error, n int) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter > 0 {
		return e.RetryAfter + rand.N(e.RetryAfter/10+1) //nolint:gosec // Not a secret.
	}
	longest := min(maxBackoff, minBackoff<<min(n-1, 10))
	return longest/2 + rand.N(longest/2) //nolint:gosec // Not a secret.
}

// sleep waits for a duration, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
