package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// The most that one request to a receiver carries: far below the 16 MiB
	// that it takes, so that one that is sent again costs little.
	requestBytes   = 2 << 20
	requestUploads = 200
	// requestTimeout bounds one request, patience all attempts of it.
	requestTimeout = 30 * time.Second
	patience       = time.Minute
	retryPause     = time.Second
)

// receiverSink posts uploads to a receiver, and sends again what it could not
// take.
type receiverSink struct {
	url    string
	key    string
	client *http.Client
	body   bytes.Buffer
	held   int
}

// NewReceiverSink posts uploads to the receiver at a base URL, such as
// http://127.0.0.1:8081, with one of its credentials.
func NewReceiverSink(baseURL, ingestKey string) UploadSink {
	url := strings.TrimRight(baseURL, "/")
	if !strings.HasSuffix(url, "/uploads") {
		url += "/uploads"
	}
	return &receiverSink{url: url, key: ingestKey, client: &http.Client{Timeout: requestTimeout}}
}

func (s *receiverSink) Send(ctx context.Context, _ string, line []byte) error {
	if s.held == requestUploads || s.held > 0 && s.body.Len()+len(line) > requestBytes {
		if err := s.Flush(ctx); err != nil {
			return err
		}
	}
	s.body.Write(line)
	s.body.WriteByte('\n')
	s.held++
	return nil
}

func (s *receiverSink) Flush(ctx context.Context) error {
	if s.held == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoPatience)
	defer cancel()
	for {
		pause, err := s.post(ctx)
		if err == nil {
			s.body.Reset()
			s.held = 0
			return nil
		}
		if pause == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// post makes one attempt. A pause above 0 says that another one may pass.
func (s *receiverSink) post(ctx context.Context) (pause time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body.Bytes()))
	if err != nil {
		return 0, refusef("%q is not the URL of a receiver: %v", s.url, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	response, err := s.client.Do(request)
	if err != nil {
		return retryPause, refusef("The receiver at %s does not answer. Check that it runs and that --to is right: %v",
			s.url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	switch {
	case err != nil:
		return retryPause, fmt.Errorf("reading the receiver's answer: %w", err)
	case response.StatusCode == http.StatusAccepted:
		return 0, nil
	case response.StatusCode >= http.StatusInternalServerError:
		return max(retryPause, retryAfter(response.Header)), refused(response.StatusCode, body)
	}
	return 0, refused(response.StatusCode, body)
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// refused repeats what the receiver says: its messages state the fix.
func refused(status int, body []byte) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error.Message == "" {
		return refusef("The receiver answered with status %d. Check that --to is the URL of a receiver.", status)
	}
	return refusef("The receiver refused the uploads (%d): %s", status, answer.Error.Message)
}

var errNoPatience = errors.New("the receiver did not take the uploads for a minute")
