package receiver

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// Database is the database as dry runs and lists of rejects use it. Uploads do not need it. The errors of its methods
// are overloaded if it is unavailable.
type Database interface {
	// Installations lists all installations of some units (decision 40). A unit that was never installed is not in the
	// map.
	Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error)
	// TeamRejects lists the rejects of uploads that came with a credential of a team, without their payloads, the newest
	// first.
	TeamRejects(ctx context.Context, teamID uuid.UUID, q roomsensor.TeamRejectQuery) ([]roomsensor.Reject, error)
	// ReceiverCursorSecret returns the secret of page cursors, which all receivers share.
	ReceiverCursorSecret(ctx context.Context) ([]byte, error)
}

const (
	// maxDatabaseUses is how many requests use the database at the same time. A worker of the same process needs the
	// other connections.
	maxDatabaseUses = 2
	// maxTeamDatabaseUses is how many requests of a team use the database or wait for it.
	maxTeamDatabaseUses = 4
	// databaseWait limits a request's wait for others that use the database, and databaseTimeout the time that it then
	// uses it.
	databaseWait    = 4 * time.Second
	databaseTimeout = 5 * time.Second
	// databaseRetryAfter is the Retry-After of a request that could not use the database because of others.
	databaseRetryAfter = time.Second
)

// databaseUses limits the requests that use the database, in total and per team.
type databaseUses struct {
	total chan struct{}
	teams *httpedge.ConcurrencyLimiter
	wait  time.Duration
	limit time.Duration // of a use
}

func newDatabaseUses() *databaseUses {
	return &databaseUses{
		total: make(chan struct{}, maxDatabaseUses), teams: httpedge.NewConcurrencyLimiter(maxTeamDatabaseUses),
		wait: databaseWait, limit: databaseTimeout,
	}
}

// useDatabase calls use when it is the turn of the request.
func (q *request) useDatabase(team uuid.UUID, use func(ctx context.Context) error) error {
	release, ok := q.database.teams.Acquire(team.String())
	if !ok {
		return httpedge.Overloaded(databaseRetryAfter,
			"Your team has too many dry runs and lists of rejects in progress. Send fewer at the same time.")
	}
	defer release()
	if err := q.awaitTurn(q.r.Context()); err != nil {
		return err
	}
	defer func() { <-q.database.total }()
	ctx, cancel := context.WithTimeout(q.r.Context(), q.database.limit)
	defer cancel()
	return use(ctx)
}

// awaitTurn waits until fewer than maxDatabaseUses requests use the database, and counts this one in
// databaseUses.total. The caller must take it out again.
func (q *request) awaitTurn(ctx context.Context) error {
	timeout := time.NewTimer(q.database.wait)
	defer timeout.Stop()
	select {
	case q.database.total <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err() // The client has left.
	case <-timeout.C:
	}
	return httpedge.Overloaded(databaseRetryAfter,
		"Too many dry runs and lists of rejects are in progress. Send the request again after the seconds in Retry-After.")
}
