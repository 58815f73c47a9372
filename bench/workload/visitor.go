package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"

	"roomsensor/bench/ground"
	"roomsensor/bench/load"
)

// visitor is one client of the API, with a key of its own.
type visitor struct {
	number int
	client *load.Client
	lease  *ground.Lease
	base   string
	dice   *rand.Rand
}

// visitors share connections, as many as they are.
type visitors struct {
	client *load.Client
	list   []*visitor
}

func (s *suite) visitors(n int) *visitors {
	v := &visitors{client: load.NewClient(n)}
	for i := range n {
		v.list = append(v.list, &visitor{
			number: i, client: v.client, lease: s.keys.Lease(), base: s.api.URL + "/v1",
			dice: rand.New(rand.NewPCG(s.fleet.Seed, uint64(i))), //nolint:gosec // Nothing here is a secret.
		})
	}
	return v
}

func (v *visitors) close() { v.client.CloseIdle() }

// get asks for a path under /v1; every answer but 200 is an error, 429 too.
func (v *visitor) get(ctx context.Context, path string) (load.Answer, error) {
	bearer, err := v.lease.Bearer(ctx)
	if err != nil {
		return load.Answer{}, err
	}
	request, err := load.Get(ctx, v.base+path, bearer)
	if err != nil {
		return load.Answer{}, err
	}
	return v.client.Do(request, http.StatusOK)
}

// crowd gives visitors to requests of an open loop, of which any number may be under way.
type crowd struct {
	suite *suite
	mu    sync.Mutex
	idle  []*visitor
}

func (c *crowd) with(do func(*visitor) error) error {
	v := c.take()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle = append(c.idle, v)
	}()
	return do(v)
}

func (c *crowd) take() *visitor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return c.suite.visitors(1).list[0]
	}
	v := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	return v
}

var errDiffers = fmt.Errorf("%w: its hash is another one than before", errBody)
