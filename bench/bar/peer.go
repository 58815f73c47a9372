package bar

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

	"roomsensor/internal/procs"
)

// Question is what a peer is asked over HTTP.
type Question struct {
	URL    string
	Accept string                         // the form of the answer; the peer's own when empty
	Read   func(io.Reader) (Cells, error) // takes the answer apart
}

// Request asks it.
func (q *Question) Request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if q.Accept != "" {
		request.Header.Set("Accept", q.Accept)
	}
	return request, nil
}

// buildPeer compiles a program of another module into a directory, in a module made for it: what it requires is nothing
// to this one.
func buildPeer(ctx context.Context, dir, module, version, program string) (string, error) {
	scratch := filepath.Join(dir, path.Base(program)+"-module")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", fmt.Errorf("making a module for %s: %w", program, err)
	}
	text := fmt.Sprintf("module peer\n\ngo 1.22\n\nrequire %s %s\n", module, version)
	if err := os.WriteFile(filepath.Join(scratch, "go.mod"), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("making a module for %s: %w", program, err)
	}
	built := filepath.Join(dir, path.Base(program))
	//nolint:gosec // The names are constants.
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", built, module+"/"+program)
	build.Dir = scratch
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, said)
	}
	return built, nil
}

// wellAfter is the longest that a peer may take to start.
const wellAfter = time.Minute

// startPeer starts a program and waits until it says that it is well.
func startPeer(ctx context.Context, url string, command procs.Command) (*procs.Process, error) {
	process, err := procs.Start(command)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wellAfter)
	defer cancel()
	if err := process.AwaitOK(ctx, url+"/health"); err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

var errPeer = errors.New("a peer answered otherwise than expected")

// tell makes a request that has no body, for what is not measured, and returns the answer.
func tell(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking a peer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("asking a peer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %s", errPeer, response.Status, body)
	}
	return body, nil
}
