package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Defaults of the options.
const (
	defaultMaxAttempts = 5
	defaultMaxWait     = time.Minute
	userAgent          = "roomsensor-go"
)

// Client sends requests with one API key. It is safe for concurrent use.
type Client struct {
	base        string // ends in /v1, unless it is that of a receiver
	key         string
	http        *http.Client
	userAgent   string
	maxAttempts int
	maxWait     time.Duration
	onRetry     func(Retry)
	sleep       func(context.Context, time.Duration) error
}

// Option is a setting of New.
type Option func(*Client)

// WithHTTPClient sends requests with h, such as one with its own transport. It must not have a timeout that is shorter
// than an export takes. The default is a client with http.DefaultTransport.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithUserAgent puts the name of the calling program, such as "acme-dashboard/1.4", before that of this package in the
// header User-Agent, which the service logs.
func WithUserAgent(name string) Option {
	return func(c *Client) { c.userAgent = name + " " + userAgent }
}

// WithMaxAttempts sends a request at most n times, counting the first. The default is 5; 1 means no retry.
func WithMaxAttempts(n int) Option { return func(c *Client) { c.maxAttempts = n } }

// WithMaxWait limits the pause before a retry. An error whose RetryAfter is longer is returned at once. The default is
// a minute. A program that may wait until the rate limit lets it continue needs 10 minutes.
func WithMaxWait(d time.Duration) Option { return func(c *Client) { c.maxWait = d } }

// WithRetryHook calls f before the pause that precedes a retry, such as to log it. f must be safe for concurrent use.
func WithRetryHook(f func(Retry)) Option { return func(c *Client) { c.onRetry = f } }

// WithSleep replaces the pause before a retry, such as in a test that must not wait. f pauses for d, and returns the
// error of ctx if that ends first. f must be safe for concurrent use. The default waits with a timer.
func WithSleep(f func(ctx context.Context, d time.Duration) error) Option {
	return func(c *Client) { c.sleep = f }
}

// New returns a client of the API at a base URL such as https://sensors.example.org, with or without the version /v1.
// White space around both does not count: a file or a variable often ends with a line end.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	return newClient(baseURL, "/v1", apiKey, options)
}

// newClient returns a client of the operations below a path, which the base URL may have or not.
func newClient(baseURL, below, apiKey string, options []Option) (*Client, error) {
	baseURL, apiKey = strings.TrimSpace(baseURL), strings.TrimSpace(apiKey)
	base, err := url.Parse(baseURL)
	if err != nil { // Its text may have a password.
		return nil, fmt.Errorf("the base URL is not of the form https://host%s", below)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the base URL %q is not of the form https://host%s", base.Redacted(), below)
	}
	if apiKey == "" {
		return nil, fmt.Errorf("the key is empty")
	}
	c := &Client{
		base: strings.TrimSuffix(strings.TrimRight(baseURL, "/"), below) + below, key: apiKey, http: &http.Client{},
		userAgent: userAgent, maxAttempts: defaultMaxAttempts, maxWait: defaultMaxWait,
		onRetry: func(Retry) {}, sleep: sleep,
	}
	for _, set := range options {
		set(c)
	}
	return c, nil
}
