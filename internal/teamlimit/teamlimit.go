// Package teamlimit limits what each team does at the same time.
package teamlimit

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
)

// Limiter lets each team do at most a number of things at the same time. Others of the same team wait, in the order of
// their arrival. Teams do not wait for each other.
type Limiter struct {
	most  int64
	mu    sync.Mutex
	teams map[uuid.UUID]*team // of those with callers of Enter
}

type team struct {
	*semaphore.Weighted

	callers int
}

// New returns a Limiter.
func New(most int) *Limiter { return &Limiter{most: int64(most), teams: map[uuid.UUID]*team{}} }

// Acquire waits until the team may do one thing more. The caller must call release once. The error is that of ctx.
func (l *Limiter) Acquire(ctx context.Context, teamID uuid.UUID) (release func(), err error) {
	things, leave := l.Enter(teamID)
	if err := things.Acquire(ctx, 1); err != nil {
		leave()
		return nil, fmt.Errorf("waiting for others of the team: %w", err)
	}
	return func() { things.Release(1); leave() }, nil
}

// Teams returns how many teams have callers.
func (l *Limiter) Teams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.teams)
}

// Enter returns what the callers of a team share, for one that does many things. The caller must call leave once.
func (l *Limiter) Enter(teamID uuid.UUID) (things *semaphore.Weighted, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.teams[teamID]
	if of == nil {
		of = &team{Weighted: semaphore.NewWeighted(l.most)}
		l.teams[teamID] = of
	}
	of.callers++
	return of.Weighted, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if of.callers--; of.callers == 0 {
			delete(l.teams, teamID)
		}
	}
}
