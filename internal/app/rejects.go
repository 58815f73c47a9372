package app

import (
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Reject is what could not be stored, without its payload.
type Reject struct {
	ID             string            `json:"id"`
	ReceivedAt     string            `json:"received_at"`
	TeamID         *string           `json:"team_id"`
	HardwareID     *string           `json:"hardware_id"`
	Reason         roomsensor.Reason `json:"reason"`
	Detail         string            `json:"detail"`
	StreamSequence uint64            `json:"stream_sequence"`
	ReplayedAt     *string           `json:"replayed_at"`
}

// RejectPayload is a reject with what arrived: as text, or in base64 where it
// is none.
type RejectPayload struct {
	Reject
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
}

// Replayed says how many rejects landed whole.
type Replayed struct {
	Replayed int `json:"replayed"`
}

func viewReject(r *roomsensor.Reject) Reject {
	view := Reject{
		ID: r.ID.String(), ReceivedAt: roomsensor.FormatTime(r.Arrival.At), HardwareID: r.HardwareID,
		Reason: r.Reason, Detail: r.Detail, StreamSequence: r.Arrival.Sequence, ReplayedAt: formatted(r.ReplayedAt),
	}
	if r.Arrival.Team != nil {
		team := r.Arrival.Team.String()
		view.TeamID = &team
	}
	return view
}

func viewRejectPayload(r *roomsensor.Reject) RejectPayload {
	view := RejectPayload{Reject: viewReject(r)}
	if utf8.Valid(r.Payload) {
		text := string(r.Payload)
		view.Payload = &text
	} else {
		coded := base64.StdEncoding.EncodeToString(r.Payload)
		view.PayloadBase64 = &coded
	}
	return view
}

// Rejects lists rejects, newest first.
func (o *Operator) Rejects(ctx context.Context, q roomsensor.RejectQuery) (List[Reject], error) {
	rejects, err := o.store.Rejects(ctx, q)
	return listOf(rejects, viewReject), o.explain(ctx, err)
}

// Reject finds a reject with its payload.
func (o *Operator) Reject(ctx context.Context, id uuid.UUID) (RejectPayload, error) {
	r, err := o.store.Reject(ctx, id)
	return viewRejectPayload(&r), o.explain(ctx, err)
}
