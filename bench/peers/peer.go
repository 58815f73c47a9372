package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/load"
	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// peer is a process of another time-series database.
type peer interface {
	questions

	String() string // name and version
	Lacks() string  // guarantees of roomsensor that it does not give
	Kill()
	CPU() (time.Duration, error) // processor time since its start

	WriteURL() string                 // accepts lines
	Settle(ctx context.Context) error // makes all written readings readable
	Count(ctx context.Context, w roomsensor.Window) (int, error)
}

// questions are those of P2 to P7.
type questions interface {
	Latest(w roomsensor.Window) *question
	Page(device uuid.UUID, w roomsensor.Window) *question
	Export(devices []uuid.UUID, w roomsensor.Window) *question
	Aggregates(device *uuid.UUID, w roomsensor.Window, bucket time.Duration) *question // of all devices if nil
	Coverage(w roomsensor.Window) *question
}

// question is an HTTP request to a peer.
type question struct {
	url    string
	accept string                         // format of the answer; the default of the peer if empty
	read   func(io.Reader) (Cells, error) // parses the answer
}

func (q *question) request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	if q.accept != "" {
		request.Header.Set("Accept", q.accept)
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
	return load.Body(request)
}
