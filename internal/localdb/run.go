package localdb

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// beat is how often a step that takes long says that it still works.
	beat = 10 * time.Second
	// outputKept is how many bytes of a command's output an error shows: the end, where the cause stands.
	outputKept = 2000
	// grace is what a command gets to clean up after it was told to stop.
	grace = 10 * time.Second
)

// progress writes lines for the person who waits. Its zero value keeps silent.
type progress struct{ w io.Writer }

func (p *progress) say(format string, args ...any) {
	if p.w != nil {
		_, _ = fmt.Fprintf(p.w, "TimescaleDB: "+format+"\n", args...)
	}
}

// during says every ten seconds that the step still runs, until the returned function is called.
func (p *progress) during(step string) (done func()) {
	started, stop := time.Now(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				p.say("still %s (%s)", step, time.Since(started).Round(time.Second))
			}
		}
	})
	return func() { close(stop); wg.Wait() }
}

// command is a program that is run to its end.
type command struct {
	step  string // What it does, as in "still <step>".
	argv  []string
	dir   string
	env   []string // Beside PATH and a neutral locale.
	as    *account // Nil: as this process.
	limit time.Duration
}

// run returns the standard output of c. Its error holds the end of what c printed.
func (c command) run(ctx context.Context, p *progress) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	defer p.during(c.step)()

	var stdout strings.Builder
	output := &tail{}
	//nolint:gosec // The programs are PostgreSQL's and Debian's own, at paths that were looked up.
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{"PATH=" + searchPath(), "LC_ALL=C"}, c.env...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, output), output
	cmd.SysProcAttr = c.as.attributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w%s", c.step, cause(ctx, err), output.indented())
	}
	return stdout.String(), nil
}

// cause prefers the reason why a command was stopped to how it died of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// searchPath is the caller's PATH with the directories of an administrator, which hold apt's tools.
func searchPath() string {
	return os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	if extra := len(t.end) - outputKept; extra > 0 {
		t.end = t.end[extra:]
	}
	return len(b), nil
}

func (t *tail) indented() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.end))
	if text == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}
