package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/fairshare"
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

// newBodyLimiter returns the limiter of the bytes of lists.
func newBodyLimiter() *fairshare.Limiter {
	return fairshare.New(fairshare.Config{
		Name: "list_bytes", Team: fairshare.Limit{Most: maxTeamBodies}, Total: fairshare.Limit{
			Most: maxBodies, RetryAfter: shareRetryAfter, Message: "Too many large responses are in progress. Try again " +
				"after the seconds in Retry-After, with a smaller limit.",
		},
	})
}

// newScanLimiter returns the limiter of pages that read many readings. Each holds 1.
func newScanLimiter() *fairshare.Limiter {
	return fairshare.New(fairshare.Config{
		Name: "scans", Team: fairshare.Limit{Most: maxTeamScans}, Total: fairshare.Limit{
			Most: maxScans, RetryAfter: shareRetryAfter, Message: "Too many requests that read many readings are in " +
				"progress. Try again after the seconds in Retry-After, and send fewer at the same time.",
		},
	})
}

// reserve waits until a team may hold an amount more, at most maxTeamBodies. It returns overloaded after a time. The
// caller must release what it returns.
func reserve(
	ctx context.Context, l *fairshare.Limiter, teamID uuid.UUID, amount int, wait time.Duration,
) (*fairshare.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return l.Acquire(ctx, fairshare.Owner{Team: teamID}, min(amount, maxTeamBodies))
}
