package doctor

import (
	"context"
	"time"

	"roomsensor/internal/store/pg"
)

// maxReplayDelay is the longest max_standby_streaming_delay that is not reported: while a read delays the log of a
// standby for longer, the primary serves the reads of all others.
const maxReplayDelay = time.Second

// checkStandbys checks the servers that the API may read from.
func (d *doctor) checkStandbys(ctx context.Context) {
	if d.options.Standbys.ReadDatabaseURL == "" {
		return
	}
	servers, err := d.store.StandbyServers(ctx, string(d.options.Standbys.ReadDatabaseURL))
	if err != nil {
		d.find(Unknown, "standby", "Check DATABASE_URL and READ_DATABASE_URL.",
			"The standbys could not be checked: %v.", d.explain(ctx, err))
		return
	}
	for i := range servers {
		d.checkStandby(&servers[i])
	}
}

func (d *doctor) checkStandby(server *pg.StandbyServer) {
	check := "standby " + server.Name
	switch {
	case server.IsPrimary:
		d.ok(check, "It is the primary now. The API leaves it out until it is a standby again.")
	case server.Err != nil:
		d.find(Wrong, check, "Start it, check its log and its address, or copy the primary again with pg_basebackup "+
			"(docs/operate/runbooks/RoomsensorStandbyUnused.md).", "The API does not read from it, because it %v.", server.Err)
	case server.MaxDelay < 0 || server.MaxDelay > maxReplayDelay:
		d.find(Advice, check, "Set max_standby_streaming_delay to 1s or less, and reload the server.",
			"One long read may delay its log for longer than %s. The API does not read from it meanwhile.", maxReplayDelay)
	case !server.Feedback:
		d.find(Advice, check, "Set hot_standby_feedback to on, and reload the server.",
			"hot_standby_feedback is off: the primary removes rows that reads need, which are then read from the primary.")
	default:
		d.ok(check, "It follows the primary.")
	}
}
