package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/test/ledger"
)

// The settings of a receiver with which one credential may send for a whole fleet.
const (
	UnlimitedRequests = "UPLOAD_REQUESTS_PER_SECOND=1000000"
	UnlimitedBytes    = "UPLOAD_BYTES_PER_SECOND=1TiB"
)

// Receiver is an HTTP client of a receiver.
type Receiver struct {
	host, path string
	client     *http.Client
}

// NewTransport returns the transport of a client that keeps up to so many idle connections of a host. It closes them
// before the processes do, after a minute: a POST on a connection that is being closed fails, and is not repeated.
func NewTransport(connections int) *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: connections, IdleConnTimeout: 30 * time.Second} //nolint:mnd // See above.
}

// NewReceiver returns a client of the receiver at a host and port, which keeps up to so many idle connections.
func NewReceiver(address string, connections int) *Receiver {
	return &Receiver{
		host: "http://" + address, path: "/uploads",
		client: &http.Client{Transport: NewTransport(connections), Timeout: requestTimeout},
	}
}

// Source returns a client of a source at the same receiver.
func (r *Receiver) Source(id uuid.UUID) *Receiver {
	return &Receiver{r.host, "/sources/" + id.String(), r.client}
}

// Close closes idle connections.
func (r *Receiver) Close() { r.client.CloseIdleConnections() }

// Answer is the answer of a receiver.
type Answer struct {
	Status     int
	RetryAfter time.Duration // of a 503; 0 if the header is missing
	Body       []byte
}

// Post sends a body once.
func (r *Receiver) Post(ctx context.Context, credential string, body []byte) (a Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.host+r.path, bytes.NewReader(body))
	if err != nil {
		return a, fmt.Errorf("posting uploads: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+credential)
	response, err := r.client.Do(request)
	if err != nil {
		return a, fmt.Errorf("posting uploads: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	a.Status, a.RetryAfter = response.StatusCode, retryAfter(response)
	a.Body, err = io.ReadAll(response.Body)
	if err != nil {
		return a, fmt.Errorf("reading the answer of the receiver: %w", err)
	}
	return a, nil
}

func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// PostUntilStored sends a body until the receiver confirms it, after the pauses that a 503 asks for. It returns the
// number of 503 answers. Every other answer than 202 and 503 with Retry-After is an error.
func (r *Receiver) PostUntilStored(ctx context.Context, credential string, body []byte) (refused int, err error) {
	for {
		a, err := r.Post(ctx, credential, body)
		switch {
		case err != nil:
			return refused, err
		case a.Status == http.StatusAccepted:
			return refused, nil
		case a.RetryAfter == 0:
			return refused, fmt.Errorf("posting uploads: status %d: %s", a.Status, a.Body)
		}
		refused++
		if err := retry.Sleep(ctx, a.RetryAfter); err != nil {
			return refused, fmt.Errorf("posting uploads: %w", err)
		}
	}
}

const (
	// senders is the number of concurrent requests: enough that requests which wait for a dead process do not block the
	// others.
	senders = 48
	// requestTimeout bounds a request to the receiver, publishTimeout one to the stream.
	requestTimeout = 20 * time.Second
	publishTimeout = 5 * time.Second
	// retryInterval is the pause before a retry.
	retryInterval = 500 * time.Millisecond
	// heldBackPercent of the requests wait until the last fault is over.
	heldBackPercent = 3
)

// schedule passes requests to the senders when they are due, and the last of them after the last fault.
func (t *Trial) schedule(ctx context.Context, requests []*ledger.Request, due chan<- *ledger.Request) {
	started := time.Now()
	heldFrom := len(requests) - len(requests)*heldBackPercent/100
	for i, r := range requests {
		timer := time.NewTimer(time.Until(started.Add(r.Due)))
		select {
		case <-timer.C:
		case <-t.Stop:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if i == heldFrom && t.NoMoreFaults != nil {
			select {
			case <-t.NoMoreFaults:
			case <-t.Stop:
				return
			case <-ctx.Done():
				return
			}
		}
		due <- r
	}
}

func (t *Trial) confirm(r *ledger.Request, at time.Time) {
	t.Watcher.Add(r.Uploads, at)
	if t.Confirmed != nil {
		t.Confirmed(r, at)
	}
}

// deliver sends a request until it is confirmed or refused, and an abandoned one once.
func (t *Trial) deliver(ctx context.Context, r *ledger.Request) {
	for ctx.Err() == nil {
		outcome, final := t.attempt(ctx, r)
		t.Ledger.Note(r.Uploads, outcome)
		if outcome == ledger.OK {
			t.confirm(r, time.Now())
		}
		if final || r.Abandoned {
			return
		}
		_ = retry.Sleep(ctx, retryInterval) // The loop checks ctx.
	}
}

// attempt sends a request once. A final outcome is not retried.
func (t *Trial) attempt(ctx context.Context, r *ledger.Request) (o ledger.Outcome, final bool) {
	if r.Path == ledger.Stream {
		o = t.publish(ctx, r.Uploads[0])
		return o, o == ledger.OK
	}
	return t.post(ctx, r)
}

// post sends a request to the receiver. After a 4xx nothing was stored, after a 503 a part may have been.
func (t *Trial) post(ctx context.Context, r *ledger.Request) (o ledger.Outcome, final bool) {
	team := &t.Fleet.Teams[r.Team]
	receiver, credential, stored := t.receiver, team.Credential, http.StatusAccepted
	if r.Path == ledger.Source {
		receiver, credential, stored = t.receiver.Source(team.Source.ID), team.Source.Key, http.StatusOK
	}
	a, err := receiver.Post(ctx, credential, r.Body())
	switch {
	case err != nil:
		return outcomeOf(err), false
	case a.Status == stored && r.InvalidLine == "":
		return ledger.OK, true
	case a.Status == http.StatusBadRequest && r.InvalidLine != "":
		return ledger.Failed, true
	case a.Status == http.StatusServiceUnavailable:
		return ledger.Unknown, false
	}
	t.Unexpected("the receiver answered with status %d", a.Status)
	return ledger.Unknown, true
}

// outcomeOf distinguishes a request that was never sent from one without an answer.
func outcomeOf(err error) ledger.Outcome {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return ledger.Failed
	}
	return ledger.Unknown
}

// publish sends an upload directly to the stream, as a trusted publisher does.
func (t *Trial) publish(ctx context.Context, u *ledger.Upload) ledger.Outcome {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := t.JS.Publish(ctx, "uploads."+queue.NoTeam+"."+u.Unit.HardwareID, u.Text)
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return ledger.OK
	case refused:
		t.Logf("the stream refused an upload: %v", refusal)
		return ledger.Failed
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, jetstream.ErrNoStreamResponse):
		return ledger.Failed // It was not sent, or no server was there to store it.
	}
	return ledger.Unknown
}
