package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
)

// answerWith returns a fault: a response of a proxy or of a service in trouble.
func answerWith(status int, header, value string) func(*http.Response) (*http.Response, error) {
	return func(r *http.Response) (*http.Response, error) {
		r.StatusCode, r.Header, r.Body = status, http.Header{}, io.NopCloser(bytes.NewReader(nil))
		r.Header.Set(header, value)
		return r, nil
	}
}

// cut returns a fault: a connection that breaks within the body.
func cut(r *http.Response) (*http.Response, error) {
	r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 5), iotest.ErrReader(io.ErrUnexpectedEOF)))
	return r, nil
}

func broken(*http.Response) (*http.Response, error) { return nil, errBroken }

func TestRetry(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	for name, tc := range map[string]struct {
		faults []func(*http.Response) (*http.Response, error)
		min    []time.Duration // of the pauses; each is at most a tenth longer, or twice as long without Retry-After
		status int             // of the error; 0 means success
	}{
		"a broken connection": {[]func(*http.Response) (*http.Response, error){broken}, []time.Duration{125 * time.Millisecond}, 0},
		"a body that is cut":  {[]func(*http.Response) (*http.Response, error){cut, cut}, []time.Duration{125 * time.Millisecond, 250 * time.Millisecond}, 0},
		"503 with Retry-After": {
			[]func(*http.Response) (*http.Response, error){answerWith(503, "Retry-After", "10")}, []time.Duration{10 * time.Second}, 0,
		},
		"429 with Retry-After": {
			[]func(*http.Response) (*http.Response, error){answerWith(429, "Retry-After", "60"), answerWith(429, "Retry-After", "1")},
			[]time.Duration{60 * time.Second, time.Second},
			0,
		},
		"500 and 502 and 504": {
			[]func(*http.Response) (*http.Response, error){answerWith(500, "X", ""), answerWith(502, "X", ""), answerWith(504, "X", "")},
			[]time.Duration{125 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond},
			0,
		},
		"a pause beyond the limit": {[]func(*http.Response) (*http.Response, error){answerWith(429, "Retry-After", "600")}, nil, 429},
		"501":                      {[]func(*http.Response) (*http.Response, error){answerWith(501, "X", "")}, nil, 501},
		"too many attempts": {
			[]func(*http.Response) (*http.Response, error){
				answerWith(503, "Retry-After", "1"), answerWith(503, "Retry-After", "1"), answerWith(503, "Retry-After", "1"),
				answerWith(503, "Retry-After", "1"), answerWith(503, "Retry-After", "1"),
			},
			[]time.Duration{time.Second, time.Second, time.Second, time.Second},
			503,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reported []client.Retry
			c, pauses := newClient(t, s, &faults{fault: tc.faults}, client.WithMaxWait(2*time.Minute),
				client.WithRetryHook(func(r client.Retry) { reported = append(reported, r) }))
			team, err := c.Team(t.Context())
			if tc.status == 0 {
				require.NoError(t, err)
				require.Equal(t, s.Team, team.Team.ID)
			} else {
				e, ok := errors.AsType[*client.Error](err)
				require.True(t, ok, err)
				require.Equal(t, tc.status, e.Status)
				require.Empty(t, e.Code)
				require.NotEmpty(t, e.Error())
			}
			require.Len(t, *pauses, len(tc.min))
			require.Len(t, reported, len(tc.min))
			for i, pause := range *pauses {
				require.GreaterOrEqual(t, pause, tc.min[i])
				require.LessOrEqual(t, pause, 2*tc.min[i])
				require.Equal(t, client.Retry{Method: "GET", Path: "/team", Attempt: i + 1, Err: reported[i].Err, Pause: pause}, reported[i])
				require.Error(t, reported[i].Err)
			}
		})
	}
}

func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	c, _ := newClient(t, s, &faults{fault: []func(*http.Response) (*http.Response, error){answerWith(503, "Retry-After", date)}})
	_, err := c.Team(t.Context())
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Greater(t, e.RetryAfter, 50*time.Minute, "a proxy may send a date")
}

// TestRetryEnds checks that a client stops with its context, during a request and during a pause.
func TestRetryEnds(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.New(s.URL, s.Key, client.WithHTTPClient(&http.Client{Transport: &faults{
		fault: []func(*http.Response) (*http.Response, error){answerWith(503, "Retry-After", "50")},
	}}), client.WithRetryHook(func(client.Retry) { cancel() }))
	require.NoError(t, err)
	_, err = c.Team(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Team(ctx)
	require.ErrorIs(t, err, context.Canceled)

	c, pauses := newClient(t, s, &faults{fault: []func(*http.Response) (*http.Response, error){broken}}, client.WithMaxAttempts(1))
	_, err = c.Team(t.Context())
	require.ErrorIs(t, err, errBroken)
	require.Empty(t, *pauses)

	c, pauses = newClient(t, s, &faults{fault: []func(*http.Response) (*http.Response, error){func(r *http.Response) (*http.Response, error) {
		r.Body = io.NopCloser(bytes.NewReader([]byte("<html>")))
		return r, nil
	}}})
	_, err = c.Team(t.Context())
	require.ErrorContains(t, err, "decoding the response to GET /team")
	require.Empty(t, *pauses)
}

// slowLine is a transport to a receiver, over a line of 1 KiB/s.
type slowLine struct{}

func (slowLine) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Duration(r.ContentLength>>10) * time.Second):
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte("{}")))}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// TestUploadTimeout checks that an upload may take as long as the receiver allows.
func TestUploadTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, err := client.NewReceiver("http://receiver", "rsi_x", client.WithMaxAttempts(1),
			client.WithHTTPClient(&http.Client{Transport: slowLine{}}))
		require.NoError(t, err)
		for _, minutes := range []int{1, 15} {
			_, err = r.Upload(t.Context(), make([]byte, minutes*60<<10))
			require.NoError(t, err)
			_, err = r.TryUpload(t.Context(), make([]byte, minutes*60<<10))
			require.NoError(t, err)
		}
		_, err = r.Upload(t.Context(), make([]byte, 16<<20))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
