package demo

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// maxLogBytes is the size of the log at which the demo continues in a new file. It holds half a day.
const maxLogBytes = 10 << 20

// logFile is a log of at most two files: the current one, and the one before it with the suffix ".1". It is safe for
// concurrent use.
type logFile struct {
	path string
	max  int64 // bytes per file

	mu   sync.Mutex
	file *os.File
	size int64
}

// createLog creates an empty log.
func createLog(path string, maxBytes int64) (*logFile, error) {
	l := &logFile{path: path, max: maxBytes}
	if err := os.Remove(l.previous()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the last log of the demo: %w", err)
	}
	return l, l.create()
}

func (l *logFile) previous() string { return l.path + ".1" }

func (l *logFile) create() (err error) {
	if l.file, err = os.Create(l.path); err != nil {
		return fmt.Errorf("creating the log of the demo: %w", err)
	}
	l.size = 0
	return nil
}

// Write appends a line. It begins a new file first if the line does not fit.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.max {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.previous()), l.create()); err != nil {
			return 0, fmt.Errorf("beginning a new log of the demo: %w", err)
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		err = fmt.Errorf("writing the log of the demo: %w", err)
	}
	return n, err
}

// Close closes the current file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("closing the log of the demo: %w", err)
	}
	return nil
}
