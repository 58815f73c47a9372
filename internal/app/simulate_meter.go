package app

import (
	"fmt"
	"io"
	"time"
)

// meter reports progress once a second.
type meter struct {
	to               io.Writer
	expected         int // readings; 0 is for ever
	uploads          int
	readings         int
	started, printed time.Time
}

func newMeter(to io.Writer, expected int) *meter {
	now := time.Now()
	return &meter{to: to, expected: expected, started: now, printed: now}
}

func (m *meter) add(readings int) {
	m.uploads++
	m.readings += readings
	if now := time.Now(); now.Sub(m.printed) >= time.Second {
		m.printed = now
		m.say("%d uploads with %d readings%s, %.0f readings/s",
			m.uploads, m.readings, m.share(), float64(m.readings)/now.Sub(m.started).Seconds())
	}
}

// share is how much of the history is done; gaps make it less than all, and
// uploads that come twice more.
func (m *meter) share() string {
	if m.expected == 0 || m.readings > m.expected {
		return ""
	}
	return fmt.Sprintf(" (%d %% of the history)", 100*m.readings/m.expected)
}

func (m *meter) finish() {
	m.say("sent %d uploads with %d readings in %s",
		m.uploads, m.readings, time.Since(m.started).Round(10*time.Millisecond))
}

func (m *meter) say(format string, args ...any) {
	_, _ = fmt.Fprintf(m.to, "simulate: "+format+"\n", args...) // Progress that cannot be shown stops nothing.
}
