package cluster

import (
	"slices"
	"sync"
	"time"
)

// gauge knows when something worked, and so how long it did not.
type gauge struct {
	mu     sync.Mutex
	worked []time.Time
	failed []failure
}

// failure is what a client saw instead of a success.
type failure struct {
	at   time.Time
	what string
}

func (g *gauge) success(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.worked = append(g.worked, at)
}

func (g *gauge) failure(at time.Time, what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = append(g.failed, failure{at, what})
}

// outage is the longest time without a success within a span.
func (g *gauge) outage(from, to time.Time) (longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortFunc(g.worked, time.Time.Compare)
	last := from
	for _, at := range g.worked {
		if at.After(from) && at.Before(to) {
			longest = max(longest, at.Sub(last))
			last = at
		}
	}
	return max(longest, to.Sub(last))
}

// first is the first success after an instant; zero where there is none.
func (g *gauge) first(after time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	var first time.Time
	for _, at := range g.worked {
		if at.After(after) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// failures counts what failed in a span, by what it was.
func (g *gauge) failures(from, to time.Time) map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[string]int{}
	for _, f := range g.failed {
		if !f.at.Before(from) && f.at.Before(to) {
			counts[f.what]++
		}
	}
	return counts
}
