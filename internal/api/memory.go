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
	// bodyWait is how long a request waits for other requests to end.
	bodyWait = 4 * time.Second
	// bodyRetryAfter is the Retry-After of a request that waited in vain.
	bodyRetryAfter = 2 * time.Second
)

// bodyLimiter limits the memory of lists, per team and in total. A request that waits holds no memory and no
// connection to the database.
type bodyLimiter struct {
	bytes prometheus.Gauge

	mu      sync.Mutex
	held    int
	byTeam  map[uuid.UUID]int
	waiting []*bodyShare // in the order of arrival
}

// bodyShare is what one request holds of the memory, or waits for.
type bodyShare struct {
	limiter *bodyLimiter
	teamID  uuid.UUID
	bytes   int
	granted chan struct{}
}

func newBodyLimiter(bytes prometheus.Gauge) *bodyLimiter {
	return &bodyLimiter{bytes: bytes, byTeam: map[uuid.UUID]int{}}
}

// reserve waits until a team may hold some more bytes. It returns overloaded after bodyWait. The caller must release
// the share.
func (l *bodyLimiter) reserve(ctx context.Context, teamID uuid.UUID, bytes int) (*bodyShare, error) {
	b := &bodyShare{l, teamID, min(bytes, maxTeamBodies), make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, b)
	l.grant()
	l.mu.Unlock()
	select {
	case <-b.granted:
		return b, nil
	default:
	}
	timeout := time.NewTimer(bodyWait)
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
	return nil, httpedge.Overloaded(bodyRetryAfter,
		"Too many large responses are in progress. Try again after the seconds in Retry-After, with a smaller limit.")
}

// grant admits all requests that have room, in the order of arrival. One that needs more room than there is does not
// hold up those behind it.
func (l *bodyLimiter) grant() {
	l.waiting = slices.DeleteFunc(l.waiting, func(b *bodyShare) bool {
		if l.held+b.bytes > maxBodies || l.byTeam[b.teamID]+b.bytes > maxTeamBodies {
			return false
		}
		l.add(b.teamID, b.bytes)
		close(b.granted)
		return true
	})
}

func (l *bodyLimiter) add(teamID uuid.UUID, bytes int) {
	l.held += bytes
	l.bytes.Set(float64(l.held))
	if l.byTeam[teamID] += bytes; l.byTeam[teamID] == 0 {
		delete(l.byTeam, teamID)
	}
}

// shrink gives back what a request does not need.
func (b *bodyShare) shrink(bytes int) {
	b.limiter.mu.Lock()
	defer b.limiter.mu.Unlock()
	if bytes < b.bytes {
		b.resize(bytes)
	}
}

func (b *bodyShare) release() { b.shrink(0) }

func (b *bodyShare) resize(bytes int) {
	b.limiter.add(b.teamID, bytes-b.bytes)
	b.bytes = bytes
	b.limiter.grant()
}
