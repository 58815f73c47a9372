package world

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// step is something that happens at an instant.
type step struct {
	at    time.Time
	label string // orders the steps that were submitted together; equal ones have equal effects
	from  *process
	order bool // it arrives after what the process sent before
	do    func()
}

// World is one simulated run.
type World struct {
	plan   plan
	rng    *rand.Rand // of the driver, which decides everything
	began  time.Time
	stream *stream
	tables *tables

	steps []*step // by time; only the driver uses them
	trace uint64  // hash of all steps
	count int
	log   func(format string, args ...any) // nil, or logs each step

	mu        sync.Mutex
	submitted []*step // by processes since the last step
	wake      chan struct{}

	processes []*process // those that are not dead
	started   int        // processes
	calmed    bool       // nothing fails any more
}

func newRNG(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // The same seed must give the same run.
}

// submit makes a process send something, which has its effect after a delay. Any goroutine may call it.
func (w *World) submit(s *step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submitted = append(w.submitted, s)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// after schedules a step of the world itself, and returns it. Only the driver calls it.
func (w *World) after(d time.Duration, label string, do func()) *step {
	s := &step{at: time.Now().Add(d), label: label, do: do}
	w.insert(s)
	return s
}

// cancel takes back a step.
func (w *World) cancel(s *step) {
	w.steps = slices.DeleteFunc(w.steps, func(other *step) bool { return other == s })
}

func (w *World) insert(s *step) {
	at, _ := slices.BinarySearchFunc(w.steps, s, func(a, b *step) int {
		return cmp.Or(a.at.Compare(b.at), -1) // Behind those of the same time.
	})
	w.steps = slices.Insert(w.steps, at, s)
}

// schedule gives the steps that were submitted a time.
func (w *World) schedule() {
	w.mu.Lock()
	list := w.submitted
	w.submitted = nil
	w.mu.Unlock()
	slices.SortStableFunc(list, func(a, b *step) int { return cmp.Compare(a.label, b.label) })
	for _, s := range list {
		s.at = time.Now().Add(w.latency())
		if s.order && !s.at.After(s.from.sent) && !w.happens(w.plan.reorder) {
			s.at = s.from.sent.Add(1 + time.Duration(w.rng.IntN(1000)))
		}
		if s.at.Before(s.from.paused) {
			s.at = s.from.paused.Add(w.latency())
		}
		if s.order {
			s.from.sent = s.at
		}
		w.insert(s)
		if w.log != nil {
			w.log("%12v     sends %s", time.Since(w.began), s.label)
		}
	}
}

// latency is the time from sending to the effect. No two are equal in practice, so that no two steps are simultaneous.
func (w *World) latency() time.Duration {
	switch {
	case w.happens(w.plan.slow):
		return w.between(100*time.Millisecond, 5*time.Second)
	case w.happens(50):
		return w.between(20*time.Microsecond, time.Millisecond)
	}
	return w.between(time.Millisecond, 40*time.Millisecond)
}

func (w *World) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// happens decides with a probability in percent.
func (w *World) happens(percent float64) bool { return percent > 0 && w.rng.Float64()*100 < percent }

// runUntil runs steps until done reports true, or until a time limit has passed; then it returns false.
func (w *World) runUntil(done func() bool, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		synctest.Wait()
		w.schedule()
		if done() {
			return true
		}
		next := end
		if len(w.steps) > 0 && w.steps[0].at.Before(end) {
			next = w.steps[0].at
		}
		if wait := time.Until(next); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-w.wake:
			}
			timer.Stop()
			continue
		}
		if next.Equal(end) {
			return false
		}
		s := w.steps[0]
		w.steps = w.steps[1:]
		w.record("%s", s.label)
		s.do()
	}
}

// quiet reports whether nothing that a process sent is still to have an effect. A transaction may commit after its
// worker has given it up.
func (w *World) quiet() bool {
	return !slices.ContainsFunc(w.steps, func(s *step) bool { return s.from != nil })
}

// runWhile runs steps until do returns, which runs meanwhile. It reports false if that takes too long.
func (w *World) runWhile(do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return w.runUntil(func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, time.Minute)
}

// record adds to the trace. Steps with the same label have the same effect at the same time.
func (w *World) record(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, w.trace) // It never fails.
	_ = binary.Write(h, binary.LittleEndian, time.Since(w.began))
	_, _ = h.Write([]byte(text))
	w.trace = h.Sum64()
	w.count++
	if w.log != nil {
		w.log("%12v %s", time.Since(w.began), text)
	}
}
