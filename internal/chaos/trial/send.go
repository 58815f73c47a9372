package trial

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/chaos/ledger"
)

const (
	// senders is how many requests are under way at once: enough that those who wait for what is dead do not stop the
	// others.
	senders = 48
	// requestTimeout is what a sender waits for the receiver, publishTimeout for the stream.
	requestTimeout = 20 * time.Second
	publishTimeout = 5 * time.Second
	// retryPause is what a sender waits before it sends again.
	retryPause = 500 * time.Millisecond
)

// Sender sends requests when they are due and keeps the book of what it is told.
type Sender struct {
	Service *Service
	Fleet   *Fleet
	Ledger  *ledger.Ledger
	// Confirmed gets the requests that were just confirmed.
	Confirmed func(*ledger.Request, time.Time)
	// Calm is closed once no more faults come; until then some requests are held back, so that no fault hits silence.
	Calm <-chan struct{}
	// Enough ends the trial when it is closed, and the requests that are not due yet are never sent; nil: all are.
	Enough <-chan struct{}

	client *http.Client
}

// heldPercent is how many requests of a hundred wait for the last fault.
const heldPercent = 3

// SendAll returns once every request has its final outcome.
func (s *Sender) SendAll(ctx context.Context, requests []*ledger.Request) {
	transport := &http.Transport{MaxIdleConnsPerHost: senders}
	defer transport.CloseIdleConnections()
	s.client = &http.Client{Transport: transport}
	due := make(chan *ledger.Request)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for r := range due {
				s.deliver(ctx, r)
			}
		})
	}
	s.hand(ctx, requests, due)
	close(due)
	group.Wait()
}

// hand gives requests to the senders when they are due, and the last of them once it is calm.
func (s *Sender) hand(ctx context.Context, requests []*ledger.Request, due chan<- *ledger.Request) {
	started := time.Now()
	held := len(requests) - len(requests)*heldPercent/100
	for i, r := range requests {
		timer := time.NewTimer(time.Until(started.Add(r.Due)))
		select {
		case <-timer.C:
		case <-s.Enough:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if i == held {
			select {
			case <-s.Calm:
			case <-s.Enough:
				return
			case <-ctx.Done():
				return
			}
		}
		due <- r
	}
}

// deliver sends a request until it is confirmed or refused; one that is abandoned it sends once.
func (s *Sender) deliver(ctx context.Context, r *ledger.Request) {
	for ctx.Err() == nil {
		outcome, final := s.attempt(ctx, r)
		s.Ledger.Note(r.Uploads, outcome)
		if outcome == ledger.OK {
			s.Confirmed(r, time.Now())
		}
		if final || r.Abandoned {
			return
		}
		_ = Pause(ctx, retryPause) // The loop looks at ctx.
	}
}

// attempt sends a request once. It is final when sending again is no use.
func (s *Sender) attempt(ctx context.Context, r *ledger.Request) (o ledger.Outcome, final bool) {
	if r.Path == ledger.Stream {
		o = s.publish(ctx, r.Uploads[0])
		return o, o == ledger.OK
	}
	return s.post(ctx, r)
}

// post sends to the receiver. Of a 4xx nothing was taken; of a 503 some may have been.
func (s *Sender) post(ctx context.Context, r *ledger.Request) (o ledger.Outcome, final bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	url := "http://" + s.Service.Receiver + "/uploads"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(r.Body()))
	if err != nil {
		s.Service.Unexpected("making a request: %v", err)
		return ledger.Failed, true
	}
	request.Header.Set("Authorization", "Bearer "+s.Fleet.Teams[r.Team].Credential)
	response, err := s.client.Do(request)
	if err != nil {
		return outcomeOf(err), false
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // The status says it all.
	switch {
	case response.StatusCode == http.StatusAccepted && r.Spoilt == "":
		return ledger.OK, true
	case response.StatusCode == http.StatusBadRequest && r.Spoilt != "":
		return ledger.Failed, true
	case response.StatusCode == http.StatusServiceUnavailable:
		return ledger.Unknown, false
	}
	s.Service.Unexpected("the receiver answered %s", response.Status)
	return ledger.Unknown, true
}

// outcomeOf tells a request that never left from one without an answer.
func outcomeOf(err error) ledger.Outcome {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return ledger.Failed
	}
	return ledger.Unknown
}

// publish puts an upload straight into the stream, as trusted ground does.
func (s *Sender) publish(ctx context.Context, u *ledger.Upload) ledger.Outcome {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := s.Service.JS.Publish(ctx, "uploads."+u.Unit.HardwareID, u.Text)
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return ledger.OK
	case refused:
		s.Service.Say("the stream refused an upload: %v", refusal)
		return ledger.Failed
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, jetstream.ErrNoStreamResponse):
		return ledger.Failed // It never left, or nobody was there to store it.
	}
	return ledger.Unknown
}
