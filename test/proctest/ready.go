package proctest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"roomsensor/internal/retry"
)

// Patience limits each wait of a test for something that takes milliseconds on an idle machine. It is long, because a
// wait ends as soon as what it waits for has happened: on a busy machine, a shorter one would only fail correct code.
const Patience = time.Minute

// pollInterval is the time between two checks of whether a process is ready.
const pollInterval = 20 * time.Millisecond

// ReadyURL returns the readiness URL of a roomsensor process with the given ops address.
func ReadyURL(opsAddr string) string { return "http://" + opsAddr + "/readyz" }

// AwaitReady waits until a roomsensor process with the given ops address is ready.
func (p *Process) AwaitReady(ctx context.Context, opsAddr string) error {
	return p.AwaitOK(ctx, ReadyURL(opsAddr))
}

// AwaitOK waits until the process answers a GET of url with status 200. It returns an error if the process ends first.
func (p *Process) AwaitOK(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	err := retry.Until(ctx, pollInterval, func(ctx context.Context) (bool, error) {
		if p.Ended() {
			return false, fmt.Errorf("the process ended before it was ready: %w", p.err)
		}
		return Answers(ctx, client, url), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for a process to be ready: %w", err)
	}
	return nil
}

// Answers reports whether a GET of url is answered with status 200.
func Answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
