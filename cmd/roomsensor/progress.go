package main

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

// progress reports how far a long command is: on one line that changes on a terminal, and on a line from time to time
// elsewhere. It is for one goroutine at a time.
type progress struct {
	out      io.Writer
	name     string
	terminal bool
	now      func() time.Time
	shown    time.Time // when the last line was written
	open     bool      // the line of the terminal has text
}

func newProgress(out io.Writer, terminal bool, name string) *progress {
	return &progress{out: out, name: name, terminal: terminal, now: time.Now}
}

// update shows the state, if it is time to.
func (p *progress) update(text func() string) {
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
	p.line(text())
}

// line writes a line that stays.
func (p *progress) line(text string) {
	before := ""
	if p.open {
		before, p.open = clearLine, false
	}
	_, _ = fmt.Fprintf(p.out, "%s%s: %s\n", before, p.name, text)
}

// end removes the line of a terminal.
func (p *progress) end() {
	if p.open {
		_, _ = fmt.Fprint(p.out, clearLine)
		p.open = false
	}
}

// remaining estimates how long the rest takes. It returns an empty text while that is unknown.
func remaining(elapsed time.Duration, before, fraction float64) string {
	done := fraction - before
	if done <= 0 || fraction >= 1 || elapsed < time.Second {
		return ""
	}
	left := time.Duration(float64(elapsed) * (1 - fraction) / done)
	return fmt.Sprintf(", about %s left", left.Round(time.Second))
}
