package receiver

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// The filters of GET /rejects.
const (
	reasonParameter     = "reason"
	hardwareIDParameter = "hardware_id"
	unitParameter       = "unit" // A12.4
	sinceParameter      = "since"
)

// filterNames are those that a cursor keeps by name.
var filterNames = []string{reasonParameter, hardwareIDParameter, unitParameter}

// listRejects answers GET /rejects with a page of the rejects of the credential's team (A8.2).
func (q *request) listRejects(key *roomsensor.Key, query httpedge.Query) error {
	state, sealer, err := q.readRejectParameters(key, query)
	if err != nil {
		return err
	}
	memory := q.openMemory(key)
	defer memory.Release()
	if err := memory.Grow(roomsensor.MaxPageBytes); err != nil {
		return err
	}
	page, err := q.readRejects(key.TeamID, state, sealer)
	if err != nil {
		return err
	}
	memory.Keep(len(page.Body))
	q.log.Rows = page.Items
	_ = httpedge.WritePage(q.w, q.r, page) // A client that misses the response retries.
	return nil
}

// readRejectParameters reads the parameters in the order of decision 22: each by its own rule, then the cursor.
func (q *request) readRejectParameters(
	key *roomsensor.Key, query httpedge.Query,
) (state *cursor.State, sealer *cursor.Sealer, err error) {
	since, err := readRejectFilters(query)
	if err != nil {
		return nil, nil, err
	}
	limit, err := query.Limit()
	if err != nil {
		return nil, nil, err
	}
	if sealer, err = q.cursorSealer(key.TeamID); err != nil {
		return nil, nil, err
	}
	state, first, err := query.State(sealer, cursor.State{Endpoint: cursor.Rejects, KeyID: key.ID}, limit, time.Now())
	switch {
	case err != nil:
		return nil, nil, err
	case first:
		state.Filters, state.Request.From = query.Filters(filterNames...), since
	default:
		err = query.Compare(func(p httpedge.Parameter) bool { return sameRejects(p, since, state) })
	}
	return state, sealer, err
}

// readRejectFilters checks the filters, and returns that by time.
func readRejectFilters(query httpedge.Query) (since *time.Time, err error) {
	reason, hardwareID := query.Get(reasonParameter), query.Get(hardwareIDParameter)
	if reason != nil && !slices.Contains(roomsensor.Reasons, roomsensor.Reason(*reason)) {
		return nil, roomsensor.Invalid(reasonParameter, "reason must be one of "+roomsensor.ReasonNames()+".")
	}
	if hardwareID != nil && !roomsensor.IsHardwareID(*hardwareID) {
		return nil, roomsensor.Invalid(hardwareIDParameter, `hardware_id must be "dev:" followed by 1 to 20 digits.`)
	}
	if _, err := query.Name(unitParameter); err != nil {
		return nil, err
	}
	return roomsensor.ParseInstant(sinceParameter, query.Get(sinceParameter))
}

// sameRejects compares a filter that was sent with a cursor with that of the first page (decision 12).
func sameRejects(p httpedge.Parameter, since *time.Time, state *cursor.State) bool {
	if p.Name == sinceParameter {
		return state.Request.From != nil && since.Equal(*state.Request.From)
	}
	return httpedge.SameFilter(p, state, filterNames...)
}

// readRejects reads a page.
func (q *request) readRejects(
	team uuid.UUID, state *cursor.State, sealer *cursor.Sealer,
) (*httpedge.Page, error) {
	wanted := roomsensor.TeamRejectQuery{
		Reason:     (*roomsensor.Reason)(httpedge.OptionalFilter(state.Filters, reasonParameter)),
		HardwareID: httpedge.OptionalFilter(state.Filters, hardwareIDParameter),
		Unit:       httpedge.OptionalFilter(state.Filters, unitParameter),
		Since:      state.Request.From, Limit: state.Limit + 1,
	}
	if state.Continued() {
		wanted.After = &roomsensor.RejectPosition{ReceivedAt: state.At, ID: state.ID}
	}
	var rejects []roomsensor.Reject
	err := q.useDatabase(team, func(ctx context.Context) (err error) {
		rejects, err = q.Database.TeamRejects(ctx, team, wanted)
		return err
	})
	if err != nil {
		return nil, err
	}
	page := httpedge.NewPage(nil, sealer, state, roomsensor.MaxPageBytes)
	for i := range rejects {
		if httpedge.AddItem(page, &rejects[i], appendReject) {
			page.State.At, page.State.ID = rejects[i].Arrival.At, rejects[i].ID
		}
	}
	page.End(time.Now())
	return page, nil
}

// rejectItem is an item of the list.
type rejectItem struct {
	ID         uuid.UUID         `json:"id"`
	ReceivedAt string            `json:"received_at"`
	HardwareID *string           `json:"hardware_id"`
	Unit       *string           `json:"unit"`
	Reason     roomsensor.Reason `json:"reason"`
	Detail     string            `json:"detail"`
	ReplayedAt *string           `json:"replayed_at"`
}

func appendReject(dst []byte, r *roomsensor.Reject) []byte {
	item := rejectItem{
		ID: r.ID, ReceivedAt: roomsensor.FormatTime(r.Arrival.At), HardwareID: r.HardwareID, Unit: r.Unit,
		Reason: r.Reason, Detail: r.Detail,
	}
	if r.ReplayedAt != nil {
		item.ReplayedAt = new(roomsensor.FormatTime(*r.ReplayedAt))
	}
	text, _ := json.Marshal(item) // It fails for invalid UTF-8, which the database does not contain.
	return append(dst, text...)
}

// cursorSealer returns the sealer of cursors. Its secret is read once, when the first list needs it.
func (q *request) cursorSealer(team uuid.UUID) (*cursor.Sealer, error) {
	if known := q.cursors.Load(); known != nil {
		return known, nil
	}
	var secret []byte
	err := q.useDatabase(team, func(ctx context.Context) (err error) {
		secret, err = q.Database.ReceiverCursorSecret(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	sealer, err := cursor.NewSealer(secret)
	if err == nil {
		q.cursors.Store(sealer)
	}
	return sealer, err
}
