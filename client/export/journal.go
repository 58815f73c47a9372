package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// journalName is the name of the journal in the directory of an unfinished export.
	journalName = "journal.jsonl"
	// journalVersion changes when a program could no longer continue an export of an older one.
	journalVersion = 2
)

// plan is the first line of a journal: what the export contains, fixed when it began.
type plan struct {
	Version   int       `json:"version"`
	Request   Request   `json:"request"` // as given
	Team      uuid.UUID `json:"team"`
	StartedAt time.Time `json:"started_at"`
	From      time.Time `json:"from"` // the resolved window
	To        time.Time `json:"to"`
	Devices   int       `json:"devices"` // number of devices of one request
	All       bool      `json:"all"`     // requests name no devices
	Groups    []group   `json:"groups"`
	Segments  []segment `json:"segments"`
}

// group is the devices of one request; none if the request covers all devices of the team.
type group = []uuid.UUID

// entry is any other line of a journal. One of its fields is set.
type entry struct {
	Part   *part   `json:"part,omitempty"`
	Split  *split  `json:"split,omitempty"`
	Joined *joined `json:"joined,omitempty"`
}

// part records a part whose file is complete.
type part struct {
	From  time.Time `json:"from"` // of its segment
	Group int       `json:"group"`
	Rows  int64     `json:"rows"`
	Bytes int64     `json:"bytes"`
	Sum   []byte    `json:"sha256"` // of the response, as Check needs it
}

// split records that a segment had too many readings and was divided.
type split struct {
	From time.Time `json:"from"` // of the segment
	Into []segment `json:"into"`
}

// joined records that an output file contains everything before a time. What it contains beyond Bytes is discarded when
// the export continues.
type joined struct {
	File   int       `json:"file"`
	Until  time.Time `json:"until"`
	Rows   int64     `json:"rows"`
	Bytes  int64     `json:"bytes"`
	Hash   []byte    `json:"hash"` // the state of the SHA-256 of these bytes
	Header string    `json:"header,omitempty"`
	Done   bool      `json:"done,omitempty"` // the file is complete
}

// journal is a file with one JSON object per line. A line that a crash cut off is ignored: it counts as not written.
//
// Its methods are safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

// createJournal writes the plan. The journal appears under its name once its first line is on disk.
func createJournal(dir string, p *plan) (*journal, error) {
	path := filepath.Join(dir, journalName)
	//nolint:gosec // The caller chooses the directory.
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the journal: %w", err)
	}
	err = errors.Join((&journal{file: file}).append(p), file.Close()) // Windows renames no open file.
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the journal: %w", err)
	}
	j, _, _, err := openJournal(dir)
	return j, err
}

// openJournal reads the journal of an interrupted export and opens it for more lines. It returns an error that wraps
// fs.ErrNotExist if there is none.
func openJournal(dir string) (j *journal, p *plan, entries []entry, err error) {
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR, 0) //nolint:gosec // See createJournal.
	if err != nil {
		return nil, nil, nil, fmt.Errorf("opening the journal: %w", err)
	}
	p, entries, length, err := readJournal(file)
	if err == nil {
		err = file.Truncate(length) // The next line must not continue one that was cut off.
	}
	if err == nil {
		_, err = file.Seek(length, io.SeekStart)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("reading the journal: %w", err), file.Close())
	}
	return &journal{file: file}, p, entries, nil
}

// readJournal returns the content of a journal, and the length of its complete lines.
func readJournal(file io.Reader) (p *plan, entries []entry, length int64, err error) {
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, nil, 0, err //nolint:wrapcheck // The caller wraps it.
	}
	for line := range bytes.Lines(text) {
		if line[len(line)-1] != '\n' {
			break
		}
		length += int64(len(line))
		if p == nil {
			p = &plan{}
			if err := json.Unmarshal(line, p); err != nil {
				return nil, nil, 0, fmt.Errorf("line 1: %w", err)
			}
			continue
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: %w", len(entries)+2, err)
		}
		entries = append(entries, e)
	}
	if p == nil {
		return nil, nil, 0, errors.New("it has no complete line")
	}
	return p, entries, length, nil
}

// append writes one line and waits until it is on disk.
func (j *journal) append(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encoding a line of the journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	return nil
}

// syncDir makes the names in a directory durable. Windows does so itself, and has no call for it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return fmt.Errorf("opening a directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("writing a directory: %w", err)
	}
	return nil
}
