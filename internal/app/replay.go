package app

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/ingest"
	"roomsensor/internal/roomsensor"
)

// mostReplayed bounds what is looked up for one replay of a reason.
const mostReplayed = 1_000_000

// ReplayRejects judges and stores rejects once more, as a worker does: those
// with the ids, or all of a reason, or with both those of the ids that have
// the reason. Those that do not land whole are named in progress. Nothing is
// replayed when an id is unknown.
func (o *Operator) ReplayRejects(
	ctx context.Context, ids []uuid.UUID, reason *roomsensor.Reason, progress io.Writer,
) (done Replayed, err error) {
	if len(ids) == 0 {
		ids, err = o.rejectsOf(ctx, reason)
	} else {
		ids, err = o.rejectsAmong(ctx, ids, reason)
	}
	if err != nil {
		return done, o.explain(ctx, err)
	}
	for _, id := range ids {
		landed, err := o.replay(ctx, id)
		if err != nil {
			_, _ = fmt.Fprintf(progress, "%d of %d rejects were replayed before the failure.\n", done.Replayed, len(ids))
			return done, o.explain(ctx, err)
		}
		if landed {
			done.Replayed++
		} else {
			_, _ = fmt.Fprintf(progress, "Reject %s did not land whole: what kept it out still does.\n", id)
		}
	}
	return done, nil
}

func (o *Operator) replay(ctx context.Context, id uuid.UUID) (landed bool, err error) {
	reject, err := o.store.Reject(ctx, id)
	if err != nil {
		return false, err
	}
	return ingest.ReplayReject(ctx, o.store, reject)
}

// rejectsOf lists the rejects of a reason, in the order of their arrival.
func (o *Operator) rejectsOf(ctx context.Context, reason *roomsensor.Reason) (ids []uuid.UUID, err error) {
	rejects, err := o.store.Rejects(ctx, roomsensor.RejectQuery{Reason: reason, Limit: mostReplayed})
	for i := range rejects {
		ids = append(ids, rejects[i].ID)
	}
	slices.Reverse(ids)
	return ids, err
}

// rejectsAmong makes sure that every id is known, and keeps those of a reason.
func (o *Operator) rejectsAmong(
	ctx context.Context, ids []uuid.UUID, reason *roomsensor.Reason,
) (known []uuid.UUID, err error) {
	for _, id := range ids {
		reject, err := o.store.Reject(ctx, id)
		if err != nil {
			return nil, err
		}
		if (reason == nil || reject.Reason == *reason) && !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return known, nil
}
