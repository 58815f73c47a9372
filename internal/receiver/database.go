package receiver

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

// Database is the database as dry runs and lists of rejects use it. Uploads do not need it. The errors of its methods
// are overloaded if it is unavailable.
type Database interface {
	source.Tables
	// Sources returns those of some sources that exist.
	Sources(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error)
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
	teams *fairshare.Limiter // those that wait, too
	total *fairshare.Limiter
	wait  time.Duration
	limit time.Duration // of a use
}

func newDatabaseUses() *databaseUses {
	return &databaseUses{
		teams: fairshare.New(fairshare.Config{Name: "database", Team: fairshare.Limit{
			Most: maxTeamDatabaseUses, RetryAfter: databaseRetryAfter,
			Message: "Your team has too many dry runs and lists of rejects in progress. Send fewer at the same time.",
		}}),
		total: fairshare.New(fairshare.Config{Name: "database", Total: fairshare.Limit{
			Most: maxDatabaseUses, RetryAfter: databaseRetryAfter, Message: "Too many dry runs and lists of rejects are in " +
				"progress. Send the request again after the seconds in Retry-After.",
		}}),
		wait: databaseWait, limit: databaseTimeout,
	}
}

// useDatabase calls use when it is the turn of the request.
func (q *request) useDatabase(team uuid.UUID, use func(ctx context.Context) error) error {
	ofTeam, err := q.database.teams.Try(fairshare.Owner{Team: team}, 1)
	if err != nil {
		return err
	}
	defer ofTeam.Release()
	ctx, cancel := context.WithTimeout(q.r.Context(), q.database.wait)
	defer cancel()
	turn, err := q.database.total.Acquire(ctx, fairshare.Owner{}, 1)
	if err != nil {
		return err
	}
	defer turn.Release()
	ctx, cancel = context.WithTimeout(q.r.Context(), q.database.limit)
	defer cancel()
	return use(ctx)
}
