package workload

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/load"
)

// sender posts uploads to a receiver, or lines to a peer.
type sender struct {
	client *load.Client
	url    string
	bearer string
	wanted int // the status of an upload that was taken
}

// senderConnections are fewer than one credential may have under way.
const senderConnections = 16

// post sends one upload. The receiver has to take it: what it asked to send again would not be counted right.
func (s *sender) post(ctx context.Context, upload []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(upload))
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	if s.bearer != "" {
		request.Header.Set("Authorization", s.bearer)
	}
	_, err = s.client.Do(request, s.wanted)
	return err
}

// postAll sends uploads in their order, on some connections.
func (s *sender) postAll(ctx context.Context, uploads [][]byte) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range senderConnections {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(uploads)); i = next.Add(1) - 1 {
				if err := s.post(ctx, uploads[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}
