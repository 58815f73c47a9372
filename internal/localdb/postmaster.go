package localdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is what a server gets to write its data out.
const stopTimeout = time.Minute

// postmaster returns the process that serves the data directory. The file postmaster.pid alone does not prove that
// there is one: after a crash it stays, and its number may belong to any other process by now.
func (d *dataDir) postmaster() (pid int, ok bool) {
	data, err := os.ReadFile(d.pidFile())
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return 0, false
	}
	return pid, strings.Contains(commandLine(pid), d.file("pgdata"))
}

func (d *dataDir) pidFile() string { return filepath.Join(d.file("pgdata"), "postmaster.pid") }

// noProcess is a number that no process has.
const noProcess = math.MaxInt32

// disownPostmaster makes the file that a crashed server left name nobody, because PostgreSQL would take the process
// that has the number by now for a server. Without the file PostgreSQL could not notice processes of the crashed
// server that still write.
func (d *dataDir) disownPostmaster() error {
	data, err := os.ReadFile(d.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, rest, _ := strings.Cut(string(data), "\n")
		//nolint:gosec // A file of ours.
		err = os.WriteFile(d.pidFile(), []byte(strconv.Itoa(noProcess)+"\n"+rest), 0o600)
	}
	if err != nil {
		return fmt.Errorf("clearing up after a crashed server: %w", err)
	}
	return nil
}

// commandLine returns the arguments of a process, empty when there is none.
func commandLine(pid int) string {
	if exists("/proc/self/cmdline") {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err != nil {
			return ""
		}
		return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	//nolint:gosec,noctx // The argument is a number, and ps ends by itself.
	line, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(line)
}

// stopPostmaster ends the server as `pg_ctl stop -m fast` does, also when the programs of its installation are gone.
func (d *dataDir) stopPostmaster(ctx context.Context) error {
	pid, ok := d.postmaster()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping PostgreSQL, process %d: %w", pid, err)
	}
	for ok {
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("waiting for PostgreSQL, process %d, to stop: %w", pid, err)
		}
		_, ok = d.postmaster()
	}
	return nil
}
