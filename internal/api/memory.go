package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/httpedge"
)

const (
	// maxBodies is the limit of the bytes of all lists that are read or sent at the same time. A list takes up to three
	// times the bytes of its body: the tags that were read, the body, and the compressed body.
	maxBodies = 64 << 20
	// maxTeamBodies is the limit of one team, which holds its part for as long as its clients take to read.
	maxTeamBodies = maxBodies / 4
	// maxScans is the limit of pages that read many readings at the same time: half of the connections of store.API, so
	// that other pages need not wait for them. maxTeamScans is the limit of one team.
	maxScans     = 8
	maxTeamScans = maxScans / 4
	// shareWait limits the wait of a request for other requests to end.
	shareWait = 4 * time.Second
	// shareRetryAfter is the Retry-After of a request that waited in vain.
	shareRetryAfter = 2 * time.Second
)

// shareLimiter limits what requests hold of a resource at the same time, per team and in total. A request that waits
// holds nothing of it, and no connection to the database.
type shareLimiter struct {
	most, perTeam int
	advice        string // for a client whose request waited in vain
	gauge         prometheus.Gauge

	mu      sync.Mutex
	held    int
	byTeam  map[uuid.UUID]int
	waiting []*share // in the order of arrival
}

// share is what one request holds of a resource, or waits for.
type share struct {
	limiter *shareLimiter
	teamID  uuid.UUID
	amount  int
	granted chan struct{}
}

// newBodyLimiter returns the limiter of the bytes of lists.
func newBodyLimiter(bytes prometheus.Gauge) *shareLimiter {
	return &shareLimiter{
		most: maxBodies, perTeam: maxTeamBodies, gauge: bytes, byTeam: map[uuid.UUID]int{},
		advice: "Too many large responses are in progress. Try again after the seconds in Retry-After, with a smaller limit.",
	}
}

// newScanLimiter returns the limiter of pages that read many readings. Each holds 1.
func newScanLimiter(scans prometheus.Gauge) *shareLimiter {
	return &shareLimiter{
		most: maxScans, perTeam: maxTeamScans, gauge: scans, byTeam: map[uuid.UUID]int{},
		advice: "Too many requests that read many readings are in progress. Try again after the seconds in Retry-After, " +
			"and send fewer at the same time.",
	}
}

// reserve is reserveWithin shareWait.
func (l *shareLimiter) reserve(ctx context.Context, teamID uuid.UUID, amount int) (*share, error) {
	return l.reserveWithin(ctx, teamID, amount, shareWait)
}

// reserveWithin waits until a team may hold some more. It returns overloaded after a time. The caller must release the
// share.
func (l *shareLimiter) reserveWithin(
	ctx context.Context, teamID uuid.UUID, amount int, wait time.Duration,
) (*share, error) {
	b := &share{l, teamID, min(amount, l.perTeam), make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, b)
	l.grant()
	l.mu.Unlock()
	select {
	case <-b.granted:
		return b, nil
	default:
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-b.granted:
		return b, nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, b); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else { // It was granted meanwhile.
		b.resize(0)
	}
	return nil, httpedge.Overloaded(shareRetryAfter, l.advice)
}

// grant admits all requests that have room, in the order of arrival. One that needs more room than there is does not
// hold up those behind it.
func (l *shareLimiter) grant() {
	l.waiting = slices.DeleteFunc(l.waiting, func(b *share) bool {
		if l.held+b.amount > l.most || l.byTeam[b.teamID]+b.amount > l.perTeam {
			return false
		}
		l.add(b.teamID, b.amount)
		close(b.granted)
		return true
	})
}

func (l *shareLimiter) add(teamID uuid.UUID, amount int) {
	l.held += amount
	l.gauge.Set(float64(l.held))
	if l.byTeam[teamID] += amount; l.byTeam[teamID] == 0 {
		delete(l.byTeam, teamID)
	}
}

// countWaiting returns how many requests wait.
func (l *shareLimiter) countWaiting() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(len(l.waiting))
}

// shrink gives back what a request does not need.
func (b *share) shrink(amount int) {
	b.limiter.mu.Lock()
	defer b.limiter.mu.Unlock()
	if amount < b.amount {
		b.resize(amount)
	}
}

func (b *share) release() { b.shrink(0) }

func (b *share) resize(amount int) {
	b.limiter.add(b.teamID, amount-b.amount)
	b.amount = amount
	b.limiter.grant()
}
