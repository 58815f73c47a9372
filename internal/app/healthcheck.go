package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// healthTimeout bounds one look at a process.
	healthTimeout = 3 * time.Second
	// healthBytes is far more than a process ever says of its readiness.
	healthBytes = 1 << 16
)

// Healthcheck asks a process of this machine, by its ops address, whether it is
// ready, and returns what it says. The error is a sentence where it is not.
func Healthcheck(ctx context.Context, opsAddr string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(opsAddr)+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for readiness: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, refusef("Nothing answers on %s. Check that the process runs and that --ops-addr (OPS_ADDR) is its own: %v", opsAddr, err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(response.Body, healthBytes))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading readiness: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, refusef("The process is not ready: %s", said)
	}
	return said, nil
}

// local is an address of this machine that reaches a listener.
func local(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
