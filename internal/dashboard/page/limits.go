package page

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

const (
	// teamPageRate is how many requests of a team are answered per second, and teamPageBurst how many at once after a
	// pause: 50 people open a page within the same second.
	teamPageRate, teamPageBurst = 20, 50
	// MaxTeamPages is how many pages and forms of a team are answered at the same time. An expensive one takes a
	// processor and a connection to the database.
	MaxTeamPages = 2
	// turnRetryAfter is the Retry-After of a request that would wait for too long.
	turnRetryAfter = 5 * time.Second
	// turnMessage is for a person whose request would wait for too long, or beside too many others.
	turnMessage = "Too many pages are opened at the same time. Try again in a few seconds."
)

// turns delays the requests of a team that sends too many, so that it cannot take all processors and all connections to
// the database. It keeps 200 bytes for each team that a person has opened.
type turns struct {
	running *fairshare.Limiter
	mu      sync.Mutex
	rates   map[uuid.UUID]*rate.Limiter
}

func newTurns() *turns {
	return &turns{rates: map[uuid.UUID]*rate.Limiter{}, running: fairshare.New(fairshare.Config{
		Name: "pages", Team: fairshare.Limit{Most: MaxTeamPages, RetryAfter: turnRetryAfter, Message: turnMessage},
	})}
}

// take waits for the turn of a request, for at most RequestTimeout. The caller must release what it returns. A stream
// may run beside pages; its handler limits how many there are.
func (t *turns) take(ctx context.Context, teamID uuid.UUID, stream bool) (*fairshare.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	if err := t.rate(teamID).Wait(ctx); err != nil {
		return nil, &roomsensor.Error{
			Code: roomsensor.CodeOverloaded, Message: turnMessage, RetryAfter: turnRetryAfter, Limit: "page_rate",
		}
	}
	if stream {
		return t.running.Open(fairshare.Owner{}), nil
	}
	return t.running.Acquire(ctx, fairshare.Owner{Team: teamID}, 1)
}

const (
	// maxVisits limits the requests in progress of one session or, on public pages, of one network. A browser opens six
	// connections.
	maxVisits = 32
	// maxAllVisits and maxPublicVisits limit those of all. Each keeps its URL and form, of up to 128 KB: 64 MB, and 17 MB
	// on public pages, where forms have 4 KB.
	maxAllVisits, maxPublicVisits = 512, 256
)

// newVisits returns the limiter of the requests in progress. It comes before everything that needs the database,
// because requests that wait there are as many as somebody likes. Its teams are networks: whether a session exists is
// not known yet, and the requests of a network with made-up sessions must not take the last place of all people.
func newVisits(name string, total int) *fairshare.Limiter {
	return fairshare.New(fairshare.Config{
		Name: name, Key: fairshare.Limit{Most: maxVisits}, Team: fairshare.Limit{Most: fairshare.Remaining},
		Total: fairshare.Limit{Most: total, RetryAfter: turnRetryAfter, Message: turnMessage},
	})
}

func (t *turns) rate(teamID uuid.UUID) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.rates[teamID]
	if of == nil {
		of = rate.NewLimiter(teamPageRate, teamPageBurst)
		t.rates[teamID] = of
	}
	return of
}

// limiterRetryAfter is the Retry-After of a request that is refused.
const limiterRetryAfter = 2 * time.Second

// NewTeamLimiter returns a limiter of the requests of a kind that run at the same time in this process, of each team
// and of all teams. busy is the sentence for those that it refuses.
func NewTeamLimiter(name string, perTeam, total int, busy string) *fairshare.Limiter {
	return fairshare.New(fairshare.Config{
		Name: name, Team: fairshare.Limit{Most: perTeam},
		Total: fairshare.Limit{Most: total, RetryAfter: limiterRetryAfter, Message: busy},
	})
}
