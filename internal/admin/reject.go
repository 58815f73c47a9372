package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/worker"
)

// maxReplayed bounds the rejects of one reason that one replay reads.
const maxReplayed = 1_000_000

// Reject is an upload, or a part of one, that could not be stored, without its payload.
type Reject struct {
	ID             string            `json:"id"`
	ReceivedAt     string            `json:"received_at"`
	TeamID         *string           `json:"team_id"         table:"-"`
	HardwareID     *string           `json:"hardware_id"     table:"-"`
	Unit           *string           `json:"unit"` // as its sender names it
	SourceID       *string           `json:"source_id"       table:"-"`
	Reason         roomsensor.Reason `json:"reason"`
	StreamSequence uint64            `json:"stream_sequence" table:"-"`
	ReplayedAt     *string           `json:"replayed_at"` // whether or not it was stored in full
	Detail         string            `json:"detail"`
}

// RejectPayload is a reject with its payload: as text, or in base64 if it is not valid UTF-8.
type RejectPayload struct {
	Reject
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
}

// Replayed is the number of rejects that a replay stored in full.
type Replayed struct {
	Replayed int `json:"replayed"`
}

func viewReject(r *roomsensor.Reject) Reject {
	view := Reject{
		ID: r.ID.String(), ReceivedAt: roomsensor.FormatTime(r.Arrival.At), HardwareID: r.HardwareID,
		Unit: r.Unit, Reason: r.Reason, Detail: r.Detail, StreamSequence: r.Arrival.Sequence,
		ReplayedAt: formatTime(r.ReplayedAt),
	}
	if r.Arrival.Team != nil {
		view.TeamID = new(r.Arrival.Team.String())
	}
	if r.Arrival.Source != nil {
		view.SourceID = new(r.Arrival.Source.String())
	}
	return view
}

func viewRejectPayload(r *roomsensor.Reject) RejectPayload {
	view := RejectPayload{Reject: viewReject(r)}
	if utf8.Valid(r.Payload) {
		view.Payload = new(string(r.Payload))
	} else {
		view.PayloadBase64 = new(base64.StdEncoding.EncodeToString(r.Payload))
	}
	return view
}

// Rejects lists rejects, newest first.
func (o *Operator) Rejects(ctx context.Context, q roomsensor.RejectQuery) (List[Reject], error) {
	rejects, err := o.store.Rejects(ctx, q)
	return listOf(rejects, viewReject), o.explain(ctx, err)
}

// Reject returns a reject with its payload.
func (o *Operator) Reject(ctx context.Context, id uuid.UUID) (RejectPayload, error) {
	reject, err := o.store.Reject(ctx, id)
	if err != nil {
		return RejectPayload{}, o.explain(ctx, err)
	}
	return viewRejectPayload(&reject), nil
}

// ReplayRejects checks and stores rejects again, as a worker does: those with the ids that the query selects; all that
// it selects if there are no ids. It replays nothing if an id is unknown, and reports to progress the rejects that were
// not stored in full, with the causes.
func (o *Operator) ReplayRejects(
	ctx context.Context, ids []uuid.UUID, q roomsensor.RejectQuery, progress io.Writer,
) (done Replayed, err error) {
	selected := len(ids) == 0
	if selected {
		ids, err = o.selectedRejects(ctx, q)
	} else {
		ids, err = o.knownRejects(ctx, ids, q)
	}
	if err != nil {
		return done, o.explain(ctx, err)
	}
	for _, id := range ids {
		rest, err := o.replayReject(ctx, id)
		if selected && errors.Is(err, roomsensor.ErrNotFound) {
			continue // A worker has deleted it meanwhile, because it is old or they are too many.
		}
		if err != nil {
			_, _ = fmt.Fprintf(progress, "Replayed %d of %d rejects before the failure.\n", done.Replayed, len(ids))
			return done, o.explain(ctx, err)
		}
		if len(rest) == 0 {
			done.Replayed++
		}
		for i := range rest {
			_, _ = fmt.Fprintf(progress, "Reject %s was not fully stored: %s: %s\n", id, rest[i].Reason, rest[i].Detail)
		}
	}
	return done, nil
}

// replayReject replays a reject and returns what could not be stored.
func (o *Operator) replayReject(ctx context.Context, id uuid.UUID) (rest []roomsensor.Reject, err error) {
	reject, err := o.store.Reject(ctx, id)
	if err != nil {
		return nil, err
	}
	return worker.Replay(ctx, o.store, reject)
}

// selectedRejects lists the rejects that a query selects, oldest first.
func (o *Operator) selectedRejects(ctx context.Context, q roomsensor.RejectQuery) (ids []uuid.UUID, err error) {
	q.Limit = maxReplayed
	rejects, err := o.store.Rejects(ctx, q)
	for i := range rejects {
		ids = append(ids, rejects[i].ID)
	}
	slices.Reverse(ids)
	return ids, err
}

// knownRejects returns those of some ids that a query selects, without duplicates. It fails if an id is unknown.
func (o *Operator) knownRejects(
	ctx context.Context, ids []uuid.UUID, q roomsensor.RejectQuery,
) (known []uuid.UUID, err error) {
	for _, id := range ids {
		reject, err := o.store.Reject(ctx, id)
		if err != nil {
			return nil, err
		}
		if q.Selects(&reject) && !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return known, nil
}
