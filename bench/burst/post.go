package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// gateway posts to a receiver, and again whatever it did not take.
type gateway struct {
	client  *http.Client
	url     string
	key     string
	refused atomic.Int64 // answers that asked to come again
}

func newGateway(url, key string, connections int) *gateway {
	return &gateway{
		client: &http.Client{
			Timeout:   time.Minute,
			Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true},
		},
		url: url + "/uploads", key: key,
	}
}

func (g *gateway) close() { g.client.CloseIdleConnections() }

// post returns once the receiver has confirmed an upload.
func (g *gateway) post(ctx context.Context, text []byte) error {
	for {
		again, err := g.attempt(ctx, text)
		if err != nil || again == 0 {
			return err
		}
		g.refused.Add(1)
		select {
		case <-ctx.Done():
			return fmt.Errorf("posting an upload: %w", ctx.Err())
		case <-time.After(again):
		}
	}
}

// attempt posts once; again is when to come back, 0 when the upload is stored.
func (g *gateway) attempt(ctx context.Context, text []byte) (again time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("posting an upload: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+g.key)
	response, err := g.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("posting an upload: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return 0, fmt.Errorf("posting an upload: %w", err)
	case response.StatusCode == http.StatusAccepted:
		return 0, nil
	case response.StatusCode != http.StatusServiceUnavailable:
		return 0, fmt.Errorf("posting an upload: %s: %s", response.Status, said)
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		return 0, errors.New("posting an upload: 503 without Retry-After")
	}
	return time.Duration(seconds) * time.Second, nil
}

// postAll posts uploads in their order, so many at once.
func (g *gateway) postAll(ctx context.Context, uploads []parcel, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range atOnce {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(uploads) {
					return nil
				}
				if err := g.post(ctx, uploads[i].text); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}
