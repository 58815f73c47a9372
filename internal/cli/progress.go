package cli

import (
	"fmt"
	"io"
	"time"
)

const (
	// redrawEvery is how often the line of a terminal changes, and logEvery how often a line is written elsewhere.
	redrawEvery = 200 * time.Millisecond
	logEvery    = 10 * time.Second
	// clearLine moves to the start of a terminal's line and removes its text.
	clearLine = "\r\x1b[K"
)

// Progress reports how far a long command is: on one line that changes on a terminal, and on a line from time to time
// elsewhere. It is for one goroutine at a time.
type Progress struct {
	out      io.Writer
	name     string
	terminal bool
	now      func() time.Time
	shown    time.Time // when the last line was written
	open     bool      // the line of the terminal has text
}

// NewProgress returns the progress of a command, whose name begins each line on stderr.
func (t *Terminal) NewProgress(name string) *Progress {
	return &Progress{out: t.Stderr, name: name, terminal: t.Watches, now: time.Now}
}

// Update shows the state, if it is time to.
func (p *Progress) Update(text func() string) {
	every := logEvery
	if p.terminal {
		every = redrawEvery
	}
	now := p.now()
	if now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	if p.terminal {
		_, _ = fmt.Fprintf(p.out, "%s%s: %s", clearLine, p.name, text())
		p.open = true
		return
	}
	p.Line(text())
}

// Line writes a line that stays.
func (p *Progress) Line(text string) {
	before := ""
	if p.open {
		before, p.open = clearLine, false
	}
	_, _ = fmt.Fprintf(p.out, "%s%s: %s\n", before, p.name, text)
}

// End removes the line of a terminal.
func (p *Progress) End() {
	if p.open {
		_, _ = fmt.Fprint(p.out, clearLine)
		p.open = false
	}
}

// Remaining estimates how long the rest takes, after earlier runs did the fraction before. The text is empty while that
// is unknown.
func Remaining(elapsed time.Duration, before, fraction float64) string {
	done := fraction - before
	if done <= 0 || fraction >= 1 || elapsed < time.Second {
		return ""
	}
	left := time.Duration(float64(elapsed) * (1 - fraction) / done)
	return fmt.Sprintf(", about %s left", left.Round(time.Second))
}
