package load

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"sync"
	"time"
)

// Client is an HTTP client that keeps its connections and does not decompress bodies.
type Client struct {
	http *http.Client
}

// NewClient returns a client that keeps up to so many idle connections.
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
	buffers = sync.Pool{New: func() any { return new(make([]byte, readBuffer)) }}
	seed    = maphash.MakeSeed()
)

const readBuffer = 64 << 10

// CloseIdle closes the idle connections.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Answer is a response. Its hash of the body can be compared within this process.
type Answer struct {
	Header http.Header
	Bytes  int64
	Hash   uint64
	Lines  int // line feeds
}

// Do sends a request and reads the whole body. Any other status than the given one is an error.
func (c *Client) Do(r *http.Request, status int) (Answer, error) {
	response, err := c.send(r, status)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := Digest(response.Body)
	answer.Header = response.Header
	return answer, err
}

// Read sends a request and returns the whole body, for a client that needs its content. Any other status than 200 is an
// error.
func (c *Client) Read(r *http.Request) ([]byte, error) {
	response, err := c.send(r, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a body: %w", err)
	}
	return body, nil
}

// send returns a response with the given status, whose body the caller closes.
func (c *Client) send(r *http.Request, status int) (*http.Response, error) {
	response, err := c.http.Do(r) //nolint:gosec // The servers are started by the benchmark.
	if err != nil {
		return nil, fmt.Errorf("sending a request: %w", err)
	}
	if response.StatusCode != status {
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body) // Only for the error.
		return nil, fmt.Errorf("%s %s: %s: %s", r.Method, r.URL.Path, response.Status, body)
	}
	return response, nil
}

// Digest reads a body to its end and hashes it.
func Digest(body io.Reader) (a Answer, err error) {
	buffer := buffers.Get().(*[]byte) //nolint:forcetypeassert // The pool has no other type.
	defer buffers.Put(buffer)
	var hash maphash.Hash
	hash.SetSeed(seed)
	for {
		n, err := body.Read(*buffer)
		part := (*buffer)[:n]
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

// Body sends a request and returns the body of the response, for a check. Any other status than 200 is an error.
func Body(r *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(r) //nolint:gosec // The servers are started by the benchmark.
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", r.URL.Path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", r.URL.Path, err)
	}
	return body, nil
}
