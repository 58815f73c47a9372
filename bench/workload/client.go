package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"

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
	shared := load.NewClient(n)
	for i := range n {
		clients = append(clients, &client{
			number: i, http: shared, lease: s.keys.NewLease(), base: s.api.URL() + "/v1",
			rng: rand.New(rand.NewPCG(s.Fleet.Seed, uint64(i))), //nolint:gosec // Not a secret.
		})
	}
	return clients
}

// get requests a path under /v1. Any other status than 200 is an error, including 429.
func (c *client) get(ctx context.Context, path string) (load.Answer, error) {
	bearer, err := c.lease.Bearer(ctx)
	if err != nil {
		return load.Answer{}, err
	}
	request, err := load.Get(ctx, c.base+path, bearer)
	if err != nil {
		return load.Answer{}, err
	}
	return c.http.Do(request, http.StatusOK)
}

// clientPool provides clients for an open loop, which may use any number at a time.
type clientPool struct {
	suite *Suite
	mu    sync.Mutex
	idle  []*client
}

func (p *clientPool) with(do func(*client) error) error {
	c := p.take()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, c)
	}()
	return do(c)
}

func (p *clientPool) take() *client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return p.suite.newClients(1)[0]
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return c
}

var errDiffers = fmt.Errorf("%w: its hash differs from that of the first body", errBody)

// body returns the body of a path under /v1, for a check.
func (s *Suite) body(ctx context.Context, path string) ([]byte, error) {
	bearer, err := s.keys.NewLease().Bearer(ctx)
	if err != nil {
		return nil, err
	}
	request, err := load.Get(ctx, s.api.URL()+"/v1"+path, bearer)
	if err != nil {
		return nil, err
	}
	return ReadBody(request)
}

// ReadBody sends a request and returns the body of the response, for a check.
func ReadBody(request *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(request) //nolint:gosec // The servers are started by the benchmark.
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", request.URL.Path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", request.URL.Path, err)
	}
	return body, nil
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
	var next atomic.Int64
	for range SenderConnections {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(bodies)); i = next.Add(1) - 1 {
				if err := s.Post(ctx, bodies[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped by Post.
}
