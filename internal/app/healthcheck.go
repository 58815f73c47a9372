package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"roomsensor/internal/config"
)

const (
	// healthTimeout bounds one look at a process.
	healthTimeout = 3 * time.Second
	// healthBytes is far more than a process ever says of its readiness.
	healthBytes = 1 << 16
)

// Healthcheck asks a process of this machine, at its ops address, whether it is
// ready, and returns what it says. The error is a sentence where it is not.
func Healthcheck(ctx context.Context, cfg config.Ops) (json.RawMessage, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.Local()+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for readiness: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, refusef("Nothing answers on %s. Check that the process runs "+
			"and that --ops-addr (OPS_ADDR) is its own: %v", cfg.OpsAddr, err)
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
