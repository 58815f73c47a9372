package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
)

// lastBefore is the longest time between a moment and the last change before it that looks as wanted: devices upload
// all the time.
const lastBefore = 10 * time.Minute

// CheckRestore checks a database that was restored, before the processes start: whether it is complete, up to when it
// has what happened, and whether the stream has all uploads since then. moment is that of the restore; nil is not
// checked. It changes nothing.
func CheckRestore(
	ctx context.Context, database config.Database, nats config.Queue, moment *time.Time,
) (Diagnosis, error) {
	s, err := process.OpenStore(ctx, database, store.Operator)
	if err != nil {
		return Diagnosis{}, err
	}
	defer s.Close()
	d := &doctor{
		store: s, url: string(database.DatabaseURL), now: time.Now, options: Options{Queue: nats},
	}
	var restored ops.Restored
	ok := false
	return d.run(ctx, func(ctx context.Context) {
		if _, migrated := d.checkMigrations(ctx); !migrated {
			return
		}
		d.checkTrials(ctx)
		if restored, err = d.store.Restored(ctx); err != nil {
			d.find(Unknown, "restored moment", needsOwner, "It could not be read: %v.", err)
			return
		}
		ok = true
		d.checkMoment(&restored, moment)
		d.checkSessions(restored.Sessions)
	}, func(ctx context.Context) {
		if ok {
			d.checkReplay(ctx, restored.StoredAt)
		}
	})
}

// checkMoment compares the newest upload with the moment of the restore. Changes of people may be newer: operators
// repeat them before the check.
func (d *doctor) checkMoment(r *ops.Restored, moment *time.Time) {
	const check = "restored moment"
	what := "The newest upload that is stored arrived at " + roomsensor.FormatTime(r.StoredAt) +
		", and people or commands changed something last at " + roomsensor.FormatTime(r.ChangedAt) + "."
	switch {
	case r.StoredAt.Unix() == 0:
		d.find(Wrong, check, "Check that this is the restored database, and repeat the restore.",
			"The database has no upload of any device.")
	case moment != nil && r.StoredAt.After(*moment):
		d.find(Wrong, check, "If no worker has run since the restore, repeat it: recovery did not stop at the moment.",
			"The database has uploads from after %s. %s", roomsensor.FormatTime(*moment), what)
	case moment != nil && moment.Sub(r.StoredAt) > lastBefore:
		d.find(Advice, check, "If devices uploaded until then, repeat the restore: check the archive and "+
			"recovery_target_timeline.", "No upload arrived in the %s before %s. %s",
			moment.Sub(r.StoredAt).Round(time.Second), roomsensor.FormatTime(*moment), what)
	default:
		d.ok(check, "%s", what)
	}
}

func (d *doctor) checkSessions(sessions int64) {
	const check = "sessions"
	if sessions > 0 {
		d.find(Wrong, check, "Run the SQL: DELETE FROM sessions; DELETE FROM sign_in_links; DELETE FROM shared_links; "+
			"DELETE FROM mails WHERE done_at IS NULL;",
			"%d sessions, links and waiting mails are valid, also those that were ended, used or sent since the moment.",
			sessions)
		return
	}
	d.ok(check, "Everybody must sign in again.")
}

// checkReplay checks that the stream has all uploads that arrived since the newest one that is stored.
func (d *doctor) checkReplay(ctx context.Context, stored time.Time) {
	const check = "replay"
	q, conn, err := process.ConnectQueue(d.options.Queue, config.Defaults[config.Stream](), "roomsensor", zerolog.Nop())
	if err != nil {
		d.find(Wrong, "queue", err.Error(), "NATS cannot be used.")
		return
	}
	defer conn.Close()
	info, err := q.Inspect(ctx)
	const lost = "Let senders send again what they sent since then. For devices that cannot, those readings are lost."
	switch {
	case errors.Is(err, queue.ErrNoStream):
		d.find(Wrong, check, "Find the stream (disk, account and NATS_URL of NATS). If it is gone, run "+
			"roomsensor stream confirm. "+lost, "There is no stream: all uploads since %s are missing.",
			roomsensor.FormatTime(stored))
		return
	case err != nil:
		d.find(Wrong, "queue", process.ExplainQueue(ctx, err).Error(), "NATS cannot be used.")
		return
	case info.Messages == 0:
		d.find(Wrong, check, lost, "The stream is empty: all uploads since %s are missing, if there were any.",
			roomsensor.FormatTime(stored))
	case info.Oldest.After(stored):
		d.find(Wrong, check, lost, "Uploads that arrived between %s and %s are neither in the database nor in the stream.",
			roomsensor.FormatTime(stored), roomsensor.FormatTime(info.Oldest))
	default:
		d.ok(check, "The stream has all %d uploads since %s, which is before the newest one that is stored. If there was a "+
			"backlog at the moment, it must reach back to its beginning.", info.Messages, roomsensor.FormatTime(info.Oldest))
	}
	d.checkStream(ctx, &info)
}
