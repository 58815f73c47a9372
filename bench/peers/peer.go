package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/workload"
	"roomsensor/test/proctest"
)

// question is an HTTP request to a peer.
type question struct {
	url  string
	read func(io.Reader) (Cells, error) // parses the answer
}

func (q *question) request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	return request, nil
}

// startTimeout is for a peer to become healthy.
const startTimeout = time.Minute

// start starts a peer and waits until a URL shows that it is healthy. The run ends it.
func start(ctx context.Context, s *workload.Suite, name, health string, command proctest.Command) (
	process *proctest.Process, err error,
) {
	if command.Log, err = s.LogFile(name); err != nil {
		return nil, err
	}
	if process, err = proctest.Start(command); err != nil {
		return nil, err
	}
	s.OnClose(func(context.Context) error { process.Kill(); return nil })
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return process, process.AwaitOK(ctx, health)
}

var errPeer = errors.New("unexpected answer of a peer")

// call sends a request without a body and returns the body of the answer.
func call(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	client := load.NewClient()
	defer client.CloseIdle()
	return client.Read(request)
}
