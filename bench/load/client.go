package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"sync"
	"time"
)

// Client asks over HTTP. It holds as many connections as there are requests at once, and takes bodies as they are.
type Client struct {
	http *http.Client
}

// NewClient makes a client for so many connections.
func NewClient(connections int) *Client {
	return &Client{
		http: &http.Client{
			Timeout: 2 * time.Minute,
			Transport: &http.Transport{
				MaxIdleConnsPerHost: connections, DisableCompression: true, ReadBufferSize: readBuffer, WriteBufferSize: 64 << 10,
			},
		},
	}
}

var (
	pages = sync.Pool{New: func() any { return new(make([]byte, readBuffer)) }}
	seed  = maphash.MakeSeed()
)

const readBuffer = 64 << 10

// CloseIdle ends the connections.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Answer is what came back, its body as a hash that is comparable within this process.
type Answer struct {
	Status int
	Header http.Header
	Bytes  int64
	Hash   uint64
	Lines  int // line feeds
}

// Do sends a request and reads the whole body. Every status but the one wanted is an error that tells the body.
func (c *Client) Do(r *http.Request, status int) (Answer, error) {
	response, err := c.http.Do(r) //nolint:gosec // Benchmarks ask what they started themselves.
	if err != nil {
		return Answer{}, fmt.Errorf("asking: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != status {
		said, _ := io.ReadAll(response.Body) // It only explains.
		return Answer{}, fmt.Errorf("asking %s: %s: %s", r.URL.Path, response.Status, said)
	}
	answer, err := Digest(response.Body)
	answer.Status, answer.Header = response.StatusCode, response.Header
	return answer, err
}

// Digest reads to the end.
func Digest(body io.Reader) (a Answer, err error) {
	page := pages.Get().(*[]byte) //nolint:forcetypeassert // The pool holds no other.
	defer pages.Put(page)
	var hash maphash.Hash
	hash.SetSeed(seed)
	for {
		n, err := body.Read(*page)
		part := (*page)[:n]
		_, _ = hash.Write(part) // It never fails.
		a.Bytes += int64(n)
		a.Lines += bytes.Count(part, []byte("\n"))
		if errors.Is(err, io.EOF) {
			a.Hash = hash.Sum64()
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("reading a body: %w", err)
		}
	}
}

// Get makes a request with a credential.
func Get(ctx context.Context, url, bearer string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	r.Header.Set("Authorization", bearer)
	return r, nil
}
