package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/env"
	"roomsensor/bench/load"
)

// client is a client of the API with its own key.
type client struct {
	number int
	http   *load.Client // shared with other clients
	lease  *env.Lease
	base   string
	rng    *rand.Rand
}

// newClients returns n clients that share their connections.
func (s *Suite) newClients(n int) (clients []*client) {
	shared := load.NewClient()
	for i := range n {
		clients = append(clients, &client{
			number: i, http: shared, lease: s.keys.NewLease(), base: s.api.URL() + "/v1",
			rng: rand.New(rand.NewPCG(s.Fleet.Seed, uint64(i))), //nolint:gosec // Not a secret.
		})
	}
	return clients
}

// request creates a request of a path under /v1.
func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	bearer, err := c.lease.Bearer(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	request.Header.Set("Authorization", bearer)
	return request, nil
}

// get requests a path under /v1. Any other status than 200 is an error, including 429.
func (c *client) get(ctx context.Context, path string) (load.Answer, error) {
	request, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return load.Answer{}, err
	}
	return c.http.Do(request, http.StatusOK)
}

var errDiffers = fmt.Errorf("%w: its hash differs from that of the first body", errBody)

// body returns the body of a path under /v1, for a check.
func (s *Suite) body(ctx context.Context, path string) ([]byte, error) {
	c := s.newClients(1)[0]
	defer c.http.CloseIdle()
	request, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return c.http.Read(request)
}

// Sender posts uploads to a receiver, or lines to a peer.
type Sender struct {
	Client *load.Client
	URL    string
	Bearer string // Authorization header; none if empty
	Status int    // of a success
}

// SenderConnections is less than one credential may use at a time.
const SenderConnections = 16

// Post sends one body. A 503 is an error, because the pause before a retry would distort the measurement.
func (s *Sender) Post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("creating a request: %w", err)
	}
	if s.Bearer != "" {
		request.Header.Set("Authorization", s.Bearer)
	}
	_, err = s.Client.Do(request, s.Status)
	return err
}

// PostAll sends bodies in their order on SenderConnections connections.
func (s *Sender) PostAll(ctx context.Context, bodies [][]byte) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(SenderConnections)
	for _, body := range bodies {
		group.Go(func() error { return s.Post(ctx, body) })
	}
	return group.Wait() //nolint:wrapcheck // Wrapped by Post.
}
