package export

import (
	"context"
	"slices"
	"sync"
	"time"
)

// state is what of an export is done. It is safe for concurrent use.
type state struct {
	mu      sync.Mutex
	changed *sync.Cond
	plan    *plan
	work    []*work         // by time
	joined  map[int]*joined // the last entry of each output file
	until   time.Time       // everything before is joined
	last    time.Time       // when a part was completed, or the run began
}

// work is a segment with its parts, one for each group of devices.
type work struct {
	segment
	parts   []*part // nil until they are complete
	started []bool
}

func (w *work) complete() bool { return !slices.Contains(w.parts, nil) }

func newWork(s segment, groups int) *work {
	return &work{segment: s, parts: make([]*part, groups), started: make([]bool, groups)}
}

// newState applies the entries of a journal to its plan.
func newState(p *plan, entries []entry) *state {
	s := &state{plan: p, joined: map[int]*joined{}, until: p.From, last: time.Now()}
	s.changed = sync.NewCond(&s.mu)
	for _, segment := range p.Segments {
		s.work = append(s.work, newWork(segment, len(p.Groups)))
	}
	for _, e := range entries {
		switch {
		case e.Part != nil:
			if w := s.find(e.Part.From); w != nil {
				w.parts[e.Part.Group], w.started[e.Part.Group] = e.Part, true
			}
		case e.Split != nil:
			s.replace(e.Split)
		case e.Joined != nil:
			s.joined[e.Joined.File], s.until = e.Joined, e.Joined.Until
		}
	}
	return s
}

// find returns the segment that starts at a time.
func (s *state) find(from time.Time) *work {
	i, found := slices.BinarySearchFunc(s.work, from, func(w *work, at time.Time) int { return w.From.Compare(at) })
	if !found {
		return nil
	}
	return s.work[i]
}

func (s *state) replace(e *split) {
	i := slices.Index(s.work, s.find(e.From))
	if i < 0 {
		return
	}
	var parts []*work
	for _, segment := range e.Into {
		parts = append(parts, newWork(segment, len(s.plan.Groups)))
	}
	s.work = slices.Replace(s.work, i, i+1, parts...)
}

// next returns the first part that nobody downloads yet. It waits while none is left but a running part may still be
// divided, and returns false when everything is complete or ctx ends.
func (s *state) next(ctx context.Context) (w *work, group int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil {
		running := false
		for _, w := range s.work {
			if w.complete() {
				continue
			}
			running = true
			if group := slices.Index(w.started, false); group >= 0 {
				w.started[group] = true
				return w, group, true
			}
		}
		if !running {
			return nil, 0, false
		}
		s.changed.Wait()
	}
	return nil, 0, false
}

// completed records a part.
func (s *state) completed(w *work, p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.parts[p.Group] = p
	s.last = time.Now()
	s.changed.Broadcast()
}

// divided replaces a segment by its parts.
func (s *state) divided(e *split) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(e)
	s.last = time.Now()
	s.changed.Broadcast()
}

// idle returns how long no part was completed.
func (s *state) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last)
}

// toJoin waits until the next segment to join is complete. It returns nil when everything is joined or ctx ends.
func (s *state) toJoin(ctx context.Context) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil && s.until.Before(s.plan.To) {
		if w := s.find(s.until); w != nil && w.complete() {
			return w
		}
		s.changed.Wait()
	}
	return nil
}

// isLast reports whether a segment is the last one of its output file.
func (s *state) isLast(w *work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.work, w)
	return i == len(s.work)-1 || s.work[i+1].File != w.File
}

// appended records that a segment is joined.
func (s *state) appended(j *joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined[j.File], s.until = j, j.Until
}

// wake makes those who wait check whether their context has ended.
func (s *state) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// status calls f with the progress. Calls do not overlap.
func (s *state) status(f func(Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{From: s.plan.From, To: s.plan.To}
	var done time.Duration
	for _, w := range s.work {
		for _, p := range w.parts {
			status.Parts++
			if p != nil {
				status.Done++
				status.Rows += p.Rows
				done += w.To.Sub(w.From) / time.Duration(len(w.parts))
			}
		}
	}
	status.Fraction = float64(done) / float64(max(s.plan.To.Sub(s.plan.From), 1))
	f(status)
}

// ofFile returns the segments of an output file.
func (s *state) ofFile(file int) (found []*work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.work {
		if w.File == file {
			found = append(found, w)
		}
	}
	return found
}
