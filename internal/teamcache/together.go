package teamcache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"roomsensor/internal/panics"
)

// TogetherConfig is the configuration of reads that share statements. A query of type Q is about one team and has an
// answer of type A.
type TogetherConfig[Q, A any] struct {
	// Read answers some queries, in their order. Its error is that of all of them.
	Read func(ctx context.Context, queries []Q) ([]A, error)
	// Timeout limits one read.
	Timeout time.Duration
	// MaxReads is how many reads run at the same time.
	MaxReads int
	// MaxQueries is how many queries one read answers.
	MaxQueries int
}

// Together answers queries about different teams. Those that arrive while MaxReads reads run are answered together by
// the next one. A single query is answered at once, and under load each of them costs less: most of the time of a
// statement that reads little is the time to plan it. It is safe for concurrent use.
type Together[Q, A any] struct {
	cfg TogetherConfig[Q, A]

	mu      sync.Mutex
	reads   int
	waiting []*asked[Q, A] // the oldest first
}

// asked is a query that waits for its answer.
type asked[Q, A any] struct {
	query  Q
	gone   <-chan struct{} // closed when nobody waits any more
	answer A
	err    error
	done   chan struct{} // closed when answer and err are set
}

// NewTogether returns a Together without queries.
func NewTogether[Q, A any](cfg TogetherConfig[Q, A]) *Together[Q, A] {
	return &Together[Q, A]{cfg: cfg}
}

// Ask returns the answer to a query, which is read after the call, or the error of ctx if that ends first.
func (t *Together[Q, A]) Ask(ctx context.Context, query Q) (answer A, err error) {
	q := &asked[Q, A]{query: query, gone: ctx.Done(), done: make(chan struct{})}
	if t.add(q) {
		go t.readWaiting(context.WithoutCancel(ctx))
	}
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// add adds a query to those that wait, and reports whether the caller must start readWaiting.
func (t *Together[Q, A]) add(q *asked[Q, A]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, q)
	if t.reads == t.cfg.MaxReads {
		return false
	}
	t.reads++
	return true
}

// readWaiting reads until no query is waiting.
func (t *Together[Q, A]) readWaiting(ctx context.Context) {
	for batch := t.next(); len(batch) > 0; batch = t.next() {
		t.read(ctx, batch)
	}
}

// next returns the queries that waited longest, without those for whose answer nobody waits. After an empty batch,
// readWaiting ends.
func (t *Together[Q, A]) next() (batch []*asked[Q, A]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.waiting) > 0 && len(batch) < t.cfg.MaxQueries {
		q := t.waiting[0]
		t.waiting[0] = nil
		t.waiting = t.waiting[1:]
		select {
		case <-q.gone:
		default:
			batch = append(batch, q)
		}
	}
	if len(batch) == 0 {
		t.reads--
	}
	return batch
}

// read answers some queries. A panic becomes their error.
func (t *Together[Q, A]) read(ctx context.Context, batch []*asked[Q, A]) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	queries := make([]Q, len(batch))
	for i, q := range batch {
		queries[i] = q.query
	}
	var answers []A
	err := panics.Recover(func() (err error) {
		answers, err = t.cfg.Read(ctx, queries)
		return err
	})
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("reading for %d teams returned %d answers", len(batch), len(answers))
	}
	for i, q := range batch {
		if q.err = err; err == nil {
			q.answer = answers[i]
		}
		close(q.done)
	}
}
