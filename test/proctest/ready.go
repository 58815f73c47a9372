package proctest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"roomsensor/internal/retry"
)

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

// Service is a ready process of a roomsensor command that serves.
type Service struct {
	*Process
	Address string // of its API or receiver
	Ops     string // ops address
}

// readyTimeout is how long a service may take to become ready on a busy machine.
const readyTimeout = time.Minute

// StartService starts a command of roomsensor on free addresses and waits until it is ready. The environment names the
// database and NATS.
func StartService(ctx context.Context, path string, log io.Writer, env []string, args ...string) (*Service, error) {
	s := &Service{}
	for _, address := range []*string{&s.Address, &s.Ops} {
		var err error
		if *address, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	env = append(env, "API_ADDR="+s.Address, "INGEST_ADDR="+s.Address, "OPS_ADDR="+s.Ops)
	var err error
	if s.Process, err = Start(Command{Path: path, Args: args, Env: env, Log: log}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.AwaitReady(ctx, s.Ops); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// URL returns the base URL of the service.
func (s *Service) URL() string { return "http://" + s.Address }
