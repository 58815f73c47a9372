package send

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/simulate"
)

const (
	// The least with which a request is sent: far below the 16 MiB that a receiver accepts, so that a retry is cheap.
	requestBytes   = 2 << 20
	requestUploads = 200
	// requestTimeout bounds one request, and flushTimeout all attempts.
	requestTimeout = 30 * time.Second
	flushTimeout   = time.Minute
	// retryDelay is the delay before a retry, unless Retry-After is longer.
	retryDelay = time.Second
	// maxResponseBytes bounds what is read of a response.
	maxResponseBytes = 1 << 16
)

// receiverSink posts uploads to a receiver and retries requests that it could not accept.
type receiverSink struct {
	url     string
	key     string
	client  *http.Client
	body    []byte
	uploads int // in body
	stored  receipt
}

// receipt is the response of the receiver to uploads that it has stored, and the sum of several.
type receipt struct {
	Stored        int      `json:"stored"` // uploads
	Readings      int      `json:"readings"`
	IgnoredFields []string `json:"ignored_fields"`
}

func (r *receipt) add(o *receipt) {
	r.Stored += o.Stored
	r.Readings += o.Readings
	for _, name := range o.IgnoredFields {
		if !slices.Contains(r.IgnoredFields, name) {
			r.IgnoredFields = append(r.IgnoredFields, name)
		}
	}
}

// NewReceiverSink returns a sink that posts uploads to the receiver at a base URL, such as http://127.0.0.1:8081, with
// an ingest key.
func NewReceiverSink(baseURL, ingestKey string) Sink {
	url := strings.TrimRight(baseURL, "/")
	if !strings.HasSuffix(url, "/uploads") {
		url += "/uploads"
	}
	return &receiverSink{url: url, key: ingestKey, client: &http.Client{Timeout: requestTimeout}}
}

func (s *receiverSink) Send(ctx context.Context, u *simulate.Upload) error {
	s.body = append(u.AppendJSON(s.body), '\n')
	s.uploads++
	if s.uploads < requestUploads && len(s.body) < requestBytes {
		return nil
	}
	return s.Flush(ctx)
}

func (s *receiverSink) Flush(ctx context.Context) error {
	if s.uploads == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for {
		delay, err := s.post(ctx)
		if err == nil {
			s.body, s.uploads = s.body[:0], 0
			return nil
		}
		if delay == 0 || retry.Sleep(ctx, delay) != nil {
			return err
		}
	}
}

// summary says what the receiver has confirmed.
func (s *receiverSink) summary() string {
	text := fmt.Sprintf("the receiver confirmed %d uploads with %d readings", s.stored.Stored, s.stored.Readings)
	if len(s.stored.IgnoredFields) > 0 {
		text += ", and ignored the fields " + strings.Join(s.stored.IgnoredFields, ", ")
	}
	return text
}

// post makes one attempt. A delay above 0 means that a retry after it may succeed.
func (s *receiverSink) post(ctx context.Context) (delay time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return 0, process.Refusef("%q is not the URL of a receiver: %v", s.url, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	response, err := s.client.Do(request)
	if err != nil {
		return retryDelay, process.Refusef(
			"The receiver at %s does not answer. Check that it runs and that --to is right: %v", s.url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	switch {
	case err != nil:
		return retryDelay, fmt.Errorf("reading the response of the receiver: %w", err)
	case response.StatusCode == http.StatusAccepted:
		var confirmed receipt
		if err := json.Unmarshal(body, &confirmed); err != nil {
			return 0, process.Refusef(
				"The answer to the uploads is not a receipt. Check that --to is the URL of a receiver: %v", err)
		}
		s.stored.add(&confirmed)
		return 0, nil
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if it is missing.
		return max(retryDelay, time.Duration(seconds)*time.Second), statusError(response.StatusCode, body)
	}
	return 0, statusError(response.StatusCode, body)
}

// statusError repeats the message of the receiver, which says what to do.
func statusError(status int, body []byte) error {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error.Message == "" {
		return process.Refusef("The receiver answered with status %d. Check that --to is the URL of a receiver.", status)
	}
	return process.Refusef("The receiver refused the uploads (%d): %s", status, envelope.Error.Message)
}
