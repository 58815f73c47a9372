package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Journal tells how a trial goes on, and keeps what should not happen whatever the faults. The zero one tells nobody.
type Journal struct {
	Progress io.Writer

	mu       sync.Mutex
	findings []string
}

// Say tells one line, with the time.
func (j *Journal) Say(format string, args ...any) {
	if j.Progress == nil {
		return
	}
	// Nobody is left to tell where this fails.
	_, _ = fmt.Fprintf(j.Progress, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

// Unexpected notes what makes the trial fail.
func (j *Journal) Unexpected(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.findings = append(j.findings, fmt.Sprintf(format, args...))
	j.Say("unexpected: "+format, args...)
}

// Findings are what was unexpected, and none of the ledger's.
func (j *Journal) Findings() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.findings
}

// Save writes a report as JSON.
func Save(path string, report any) error {
	encoded, err := json.MarshalIndent(report, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(encoded, '\n'), 0o644) //nolint:gosec // For everybody to read.
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
