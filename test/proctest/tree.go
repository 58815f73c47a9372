package proctest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what a process, or a process and its children, used.
type Usage struct {
	CPU    time.Duration
	Memory int64 // in bytes; memory that processes share counts once
}

// Usage returns the processor time and the resident memory of the process. The process must be running. It works on
// Linux only.
func (p *Process) Usage() (u Usage, err error) {
	if u.CPU, err = p.CPU(); err != nil {
		return u, err
	}
	u.Memory, _, err = p.Memory()
	return u, err
}

// OwnUsage returns what this process uses, without its children. It works on Linux only.
func OwnUsage() (Usage, error) { return usage(os.Getpid(), false) }

// TreeUsage returns what a process and its children use, such as PostgreSQL's first process. The processor time of
// children that ended is included. The process must be running. It works on Linux only, for a process of the same user
// or as root.
func TreeUsage(pid int) (u Usage, err error) {
	// The processor time of ended children is in that of their parent.
	if u, err = usage(pid, true); err != nil {
		return u, err
	}
	for _, child := range Children(pid) {
		of, err := usage(child, false)
		if isGone(err) {
			continue // It ended meanwhile, and counts the next time.
		}
		if err != nil {
			return u, err
		}
		u.CPU += of.CPU
		u.Memory += of.Memory
	}
	return u, nil
}

// isGone reports whether the process of a file in /proc has ended.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

func usage(pid int, withEnded bool) (u Usage, err error) {
	if u.CPU, err = processorTime(pid, withEnded); err != nil {
		return u, err
	}
	// The share of a process in shared memory is that divided by the number of processes.
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return u, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(rollup)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			u.Memory = kib << 10
		}
	}
	return u, nil
}

// Children returns the child processes of a process. Without /proc it returns none.
func Children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // Only a bad pattern is an error.
	for _, path := range stats {
		fields, err := readStat(path)
		if err != nil || fields[1] != strconv.Itoa(parent) {
			continue // The process ended, or is another's.
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Parent returns the parent of a process. It works on Linux only.
func Parent(pid int) (int, error) {
	fields, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, fmt.Errorf("reading the parent of a process: %w", err)
	}
	return parent, nil
}

// clockTick is the unit of processor time in /proc, on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

// processorTime returns the processor time of a process, if wanted with that of its children that ended.
func processorTime(pid int, withEnded bool) (time.Duration, error) {
	fields, err := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The process's own time in the program and in the kernel, and that of its children that ended.
	numbers := fields[11:13]
	if withEnded {
		numbers = fields[11:15]
	}
	var ticks int64
	for _, number := range numbers {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// readStat returns the fields of a file stat in /proc from the state on: the state, the parent, and at least 13 others.
func readStat(path string) ([]string, error) {
	stat, err := os.ReadFile(path) //nolint:gosec // A file of the kernel.
	if err != nil {
		return nil, fmt.Errorf("reading the state of a process: %w", err)
	}
	// The name, which can hold any character, is in parentheses before them.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return nil, errors.New("reading the state of a process: the kernel does not report it")
	}
	return fields, nil
}
