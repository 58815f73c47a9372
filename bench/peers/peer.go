package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"roomsensor/test/proctest"
)

// Question is an HTTP request to a peer.
type Question struct {
	URL    string
	Accept string                         // format of the answer; the default of the peer if empty
	Read   func(io.Reader) (Cells, error) // parses the answer
}

// Request returns the request.
func (q *Question) Request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	if q.Accept != "" {
		request.Header.Set("Accept", q.Accept)
	}
	return request, nil
}

// buildPeer compiles a program of another module into a directory. It creates a module for it, because the requirements
// conflict with those of this module.
func buildPeer(ctx context.Context, dir, module, version, program string) (string, error) {
	scratch := filepath.Join(dir, path.Base(program)+"-module")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", fmt.Errorf("creating a module for %s: %w", program, err)
	}
	text := fmt.Sprintf("module peer\n\ngo 1.22\n\nrequire %s %s\n", module, version)
	if err := os.WriteFile(filepath.Join(scratch, "go.mod"), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("creating a module for %s: %w", program, err)
	}
	built := filepath.Join(dir, path.Base(program))
	//nolint:gosec // The names are constants.
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", built, module+"/"+program)
	build.Dir = scratch
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, output)
	}
	return built, nil
}

// startTimeout is for a peer to become healthy.
const startTimeout = time.Minute

// startPeer starts a program and waits until it is healthy.
func startPeer(ctx context.Context, url string, command proctest.Command) (*proctest.Process, error) {
	process, err := proctest.Start(command)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := process.AwaitOK(ctx, url+"/health"); err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

var errPeer = errors.New("unexpected answer of a peer")

// call sends a request without a body and returns the body of the answer.
func call(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("calling a peer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("calling a peer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %s", errPeer, response.Status, body)
	}
	return body, nil
}
