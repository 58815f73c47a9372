// Package command runs the programs that set up and start PostgreSQL: as another user, with a time limit, with
// progress for the person who waits, and with the end of their output in errors.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// progressInterval is how often a long step reports that it still runs.
	progressInterval = 10 * time.Second
	// outputKept is how many bytes of a program's output an error shows: the end, where the cause is.
	outputKept = 2000
	// stopGrace is the time that a program gets to clean up after SIGTERM.
	stopGrace = 10 * time.Second
)

// Progress writes a line per step for the person who waits. The zero value is silent.
type Progress struct{ W io.Writer }

// Log writes one line.
func (p *Progress) Log(format string, args ...any) {
	if p.W != nil {
		_, _ = fmt.Fprintf(p.W, "TimescaleDB: "+format+"\n", args...)
	}
}

// During reports every ten seconds that a step still runs, until done is called.
func (p *Progress) During(step string) (done func()) {
	started, stop := time.Now(), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				p.Log("still %s (%s)", step, time.Since(started).Round(time.Second))
			}
		}
	})
	return func() { close(stop); group.Wait() }
}

// Command is a program that runs to its end.
type Command struct {
	Step  string   // what it does, with a gerund: "starting PostgreSQL"
	Argv  []string // the program, looked up in Path, and its arguments
	Dir   string
	Env   []string // added to PATH and a neutral locale, which is all that it inherits
	As    *Account // nil: the user of this process
	Limit time.Duration
}

// Run runs c and returns its standard output. The error has the step and the end of what the program printed.
func (c Command) Run(ctx context.Context, p *Progress) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	defer p.During(c.Step)()

	var stdout, stderr bytes.Buffer
	//nolint:gosec // The programs are PostgreSQL's and Debian's own, at paths that were looked up.
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append([]string{"PATH=" + Path(), "LC_ALL=C"}, c.Env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = c.As.attributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // Why the program was stopped, not how it died of it.
		}
		return "", fmt.Errorf("%s: %w%s", c.Step, err, Indented(append(stdout.Bytes(), stderr.Bytes()...)))
	}
	return stdout.String(), nil
}

// Inherited returns the environment variables of this process that have one of the names and a value.
func Inherited(names ...string) []string {
	var env []string
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Path is the PATH of the caller and the directories of administrators, which hold apt's tools.
func Path() string {
	return os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
}

// Find returns the path of a program in Path, or an empty string.
func Find(program string) string {
	for _, dir := range filepath.SplitList(Path()) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	return ""
}

// Indented returns the last 2,000 bytes of a program's output as the continuation of an error message.
func Indented(output []byte) string {
	text := strings.TrimSpace(string(output[max(0, len(output)-outputKept):]))
	if text == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// Exists reports whether a path names a file or directory.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Account is the user that PostgreSQL runs as when this process is root, because PostgreSQL refuses root. Nil is the
// user of this process.
type Account struct {
	name     string
	uid, gid uint32
}

// AccountFor returns the account for the server of a data directory: the owner of existing data, otherwise postgres,
// otherwise nobody. It returns nil if this process is not root.
func AccountFor(data string) (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // Nil is the documented account of an ordinary user.
	}
	if info, err := os.Stat(data); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return &Account{name: "uid " + strconv.Itoa(int(owner.Uid)), uid: owner.Uid, gid: owner.Gid}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root and there is no user postgres or nobody: create one of them")
}

func newAccount(u *user.User) (*Account, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("reading the ids of %s: %w", u.Username, err)
	}
	return &Account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

func (a *Account) attributes() *syscall.SysProcAttr {
	if a == nil {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// Own makes the account the owner of files.
func (a *Account) Own(paths ...string) error {
	if a == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("changing the owner of a file to %s: %w", a.name, err)
		}
	}
	return nil
}

// Reach returns an error with advice if the account cannot enter dir, for example a directory below /root.
func (a *Account) Reach(ctx context.Context, dir string) error {
	if a == nil {
		return nil
	}
	probe := Command{
		Step: "entering " + dir, Argv: []string{"/bin/sh", "-c", `cd "$1"`, "sh", dir}, Dir: "/", As: a, Limit: time.Minute,
	}
	if _, err := probe.Run(ctx, &Progress{}); err != nil {
		return fmt.Errorf("PostgreSQL runs as %s, who cannot enter %s: choose another directory with ROOMSENSOR_HOME or"+
			" --data-dir", a.name, dir)
	}
	return nil
}
