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

	"github.com/valyala/fasthttp"
)

// Client is an HTTP client that keeps its connections and does not decompress bodies. It shares the processors with the
// service, so it uses fasthttp: net/http takes about 60 µs more for an upload. A request does not end with its context,
// but after requestTimeout.
type Client struct {
	http *fasthttp.Client
}

const requestTimeout = 2 * time.Minute

// NewClient returns a client of at most MaxOpen connections.
func NewClient() *Client {
	return &Client{
		http: &fasthttp.Client{
			MaxConnsPerHost: MaxOpen, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
			ReadBufferSize: readBuffer, StreamResponseBody: true, DisablePathNormalizing: true,
			RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
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
	ETag  string
	Bytes int64
	Hash  uint64
	Lines int // line feeds
}

// Do sends a request and reads the whole body. Any other status than the given one is an error.
func (c *Client) Do(r *http.Request, status int) (answer Answer, err error) {
	err = c.send(r, status, func(response *fasthttp.Response, body io.Reader) (err error) {
		answer, err = Digest(body)
		answer.ETag = string(response.Header.Peek("ETag"))
		return err
	})
	return answer, err
}

// Read sends a request and returns the whole body, for a client that needs its content. Any other status than 200 is an
// error.
func (c *Client) Read(r *http.Request) (body []byte, err error) {
	err = c.send(r, http.StatusOK, func(_ *fasthttp.Response, from io.Reader) (err error) {
		if body, err = io.ReadAll(from); err != nil {
			return fmt.Errorf("reading a body: %w", err)
		}
		return nil
	})
	return body, err
}

// send sends a request and passes the response, which must have the given status, and its body to read.
func (c *Client) send(r *http.Request, status int, read func(*fasthttp.Response, io.Reader) error) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(r.Method)
	request.SetRequestURI(r.URL.String())
	for name, values := range r.Header {
		request.Header.Set(name, values[0])
	}
	if r.Body != nil {
		request.SetBodyStream(r.Body, int(r.ContentLength))
	}
	if err := c.http.Do(request, response); err != nil {
		return fmt.Errorf("sending a request: %w", err)
	}
	defer func() { _ = response.CloseBodyStream() }()
	body := response.BodyStream()
	if body == nil { // A response without a body.
		body = http.NoBody
	}
	if got := response.StatusCode(); got != status {
		text, _ := io.ReadAll(body) // Only for the error.
		return fmt.Errorf("%s %s: %d: %s", r.Method, r.URL.Path, got, text)
	}
	return read(response, body)
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
