package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/feed"
	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	sinceParameter   = "since"
	waitParameter    = "wait"
	includeParameter = "include"

	// includeDeletions is the only value of include.
	includeDeletions = "deletions"

	// maxWait is the longest wait of a request for changes, in seconds (A5.1).
	maxWait = 30
	// maxChangeBytes is more than a reading with its device takes in a list.
	maxChangeBytes = 320
	// maxDeletionBytes is what a deletion takes in a list: an id and three times.
	maxDeletionBytes = 180
)

// listChanges handles GET /readings/changes (A5).
func (s *server) listChanges(ctx context.Context, c *call) error {
	asked, err := s.readChangesRequest(ctx, c)
	if err != nil {
		return err
	}
	// When the server's read deadline passes, the context ends as if the client had left.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	waiter := s.feed.Waiter(c.key, asked.state.IDs, asked.wait)
	defer waiter.End()
	for {
		if sent, err := s.tryChanges(ctx, c, asked, waiter); sent || err != nil {
			return err
		}
		if err := waiter.Wait(ctx, asked.state.Window.From); err != nil {
			return err
		}
	}
}

// tryChanges reads a page and sends it. It sends nothing if the request waits for a change.
func (s *server) tryChanges(ctx context.Context, c *call, asked *changesRequest, waiter *feed.Waiter) (bool, error) {
	mark, err := s.feed.Watermark(ctx)
	if err != nil {
		return false, err
	}
	if asked.fromNow {
		asked.state.Window, asked.fromNow = roomsensor.Window{From: mark.At, To: mark.At}, false
	}
	if waiter.MayWait() && asked.isAt(mark.At) {
		return false, nil // As most requests of a client that follows the feed; it needs no memory and no query.
	}
	bytes := asked.state.Limit * maxChangeBytes
	if withDeletions(asked.state) {
		bytes += roomsensor.MaxPageDeletions * maxDeletionBytes
	}
	share, err := reserve(ctx, s.bodies, c.key.TeamID, bytes, patience(waiter))
	if err != nil {
		return false, err
	}
	defer share.Release()
	scan, err := reserve(ctx, s.scans, c.key.TeamID, 1, patience(waiter))
	if err != nil {
		return false, err
	}
	defer scan.Release()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	buffer := httpedge.GetBuffer()
	defer httpedge.PutBuffer(buffer)
	p := &changesPage{page: page{Page: httpedge.NewPage(*buffer, s.cursors, asked.state, roomsensor.MaxPageBytes)}}
	defer func() { *buffer = p.Body }()
	caughtUp, err := s.readChanges(atMark(ctx, p.State.Window, mark), c.key.TeamID, p, mark.At)
	scan.Release()
	if err != nil {
		return false, err
	}
	if p.Items+p.deletions == 0 && caughtUp && waiter.MayWait() {
		*asked.state = p.State
		return false, nil
	}
	p.EndFeed(s.now(), caughtUp, p.more())
	share.Keep(len(p.Body))
	c.rows = p.Items
	return true, httpedge.WritePage(c.Response(), c.Request(), p.Page)
}

// changesPage is a page of the change feed, with the deletions that come before its readings.
type changesPage struct {
	page
	deleted   []byte // items in JSON
	deletions int
}

// withDeletions reports whether the client asked for deletions.
func withDeletions(state *cursor.State) bool {
	return state.Filters[includeParameter] == includeDeletions
}

// addDeletions adds the deletions of a round.
func (p *changesPage) addDeletions(deleted []roomsensor.ReadingDeletion) {
	for i := range deleted {
		if p.deletions > 0 {
			p.deleted = append(p.deleted, ',')
		}
		p.deleted = render.Deletion(p.deleted, &deleted[i])
		p.deletions++
	}
}

// more returns the member deleted of the envelope, if the client asked for it.
func (p *changesPage) more() []byte {
	if !withDeletions(&p.State) {
		return nil
	}
	return append(append([]byte(`,"deleted":[`), p.deleted...), ']')
}

// patience limits the wait of a request for other requests to end: the rest of its wait, so that of many requests woken
// at once, none is refused that has time left.
func patience(waiter *feed.Waiter) time.Duration { return max(shareWait, waiter.Left()) }

// atMark returns a context whose reads include what is committed before a watermark, and before the request: the
// watermark may be older or, if the request waited, newer. A round in progress may end at a later watermark of another
// replica, whose position is not known here: it is read on the primary.
func atMark(ctx context.Context, round roomsensor.FeedRound, mark roomsensor.FeedWatermark) context.Context {
	if round.To.After(mark.At) {
		return roomsensor.WithPosition(ctx, roomsensor.Position{})
	}
	return roomsensor.WithPosition(ctx, mark.Position.Later(roomsensor.PositionOf(ctx)))
}

// readChanges adds readings to a page, of the round in its state and, if that is complete, of another one until the
// watermark. It reports whether the client has everything before the watermark. A cursor beyond the watermark is one of
// another replica, or ahead of a restored database: the store decides.
func (s *server) readChanges(
	ctx context.Context, teamID uuid.UUID, p *changesPage, watermark time.Time,
) (caughtUp bool, err error) {
	state := &p.State
	var position *time.Time
	if state.Continued() {
		position = new(state.Window.To)
	}
	for {
		if !state.Window.From.Before(state.Window.To) {
			switch state.Window.From.Compare(watermark) {
			case 0:
				return true, nil
			case 1:
				caughtUp = true
			default:
				state.Window.To = watermark
			}
		}
		q := p.query(position)
		if withDeletions(state) && q.Deletions == 0 {
			return false, nil // The page has the most.
		}
		progress, err := s.backend.EachChange(ctx, teamID, q, func(change *roomsensor.Change) bool {
			return add(&p.page, change, render.Change)
		})
		if err != nil || caughtUp {
			return caughtUp && err == nil, err
		}
		if p.advance(&progress); !progress.Done {
			return false, nil
		}
	}
}

// query returns the query for the rest of the round.
func (p *changesPage) query(position *time.Time) roomsensor.FeedQuery {
	state := &p.State
	q := roomsensor.FeedQuery{
		Round: state.Window, Devices: state.IDs, Metadata: httpedge.TagsIn(state.Filters),
		ExternalRef: httpedge.OptionalFilter(state.Filters, externalRefParameter),
		Most:        state.Limit - p.Items + 1, Cursor: position,
	}
	if !state.At.IsZero() {
		q.After = &roomsensor.FeedPosition{DeviceID: state.ID, BucketAt: state.At}
	}
	if withDeletions(state) {
		q.Deletions = roomsensor.MaxPageDeletions - p.deletions
	}
	return q
}

// advance adds the deletions of a round, and moves the state to where the round was read. The deletions may precede the
// readings of the round before in the page: no reading of an earlier round is left in a range that was deleted, see
// schema/00007_feed.sql.
func (p *changesPage) advance(progress *roomsensor.FeedProgress) {
	state := &p.State
	p.addDeletions(progress.Deleted)
	if !progress.Until.IsZero() {
		state.Window.To = progress.Until
	}
	switch {
	case progress.Done:
		state.Window.From, state.At, state.ID = state.Window.To, time.Time{}, uuid.Nil
	case progress.After != nil:
		state.At, state.ID = progress.After.BucketAt, progress.After.DeviceID
	}
}

// changesRequest has the parameters of a request for changes.
type changesRequest struct {
	state   *cursor.State
	fromNow bool // the state has no round yet
	wait    time.Duration
}

// isAt reports whether the client has everything before the watermark.
func (r *changesRequest) isAt(watermark time.Time) bool {
	w := r.state.Window
	return !w.From.Before(w.To) && !w.From.Before(watermark)
}

// readChangesRequest reads the parameters in the order of decision 22: each by its own rule, then the cursor, then the
// devices.
func (s *server) readChangesRequest(ctx context.Context, c *call) (*changesRequest, error) {
	q, err := c.query(cursorParameter, sinceParameter, externalRefParameter, devicesParameter, metadataPrefix,
		limitParameter, includeParameter, waitParameter)
	if err != nil {
		return nil, err
	}
	since, err := s.readSince(q)
	if err != nil {
		return nil, err
	}
	devices, err := httpedge.ReadDevices(q)
	if err != nil {
		return nil, err
	}
	if include := q.Get(includeParameter); include != nil && *include != includeDeletions {
		return nil, roomsensor.Invalid(includeParameter, "include must be deletions.")
	}
	asked := &changesRequest{}
	if asked.wait, err = readWait(q.Get(waitParameter)); err != nil {
		return nil, err
	}
	if c.Request().Method == http.MethodHead {
		asked.wait = 0
	}
	var first bool
	if asked.state, first, err = s.readState(c, q, cursor.Changes, uuid.Nil); err != nil {
		return nil, err
	}
	if !first {
		return asked, sameChanges(q, since, devices, asked.state)
	}
	asked.state.Filters, asked.state.Request.From = q.Filters(externalRefParameter, includeParameter), since
	if asked.fromNow = since == nil; !asked.fromNow {
		from := since.Add(-roomsensor.FeedMargin)
		asked.state.Window = roomsensor.Window{From: from, To: from}
	}
	return asked, s.nameDevices(ctx, c, devices, asked.state)
}

// nameDevices sets the devices of a first page.
func (s *server) nameDevices(
	ctx context.Context, c *call, devices httpedge.DeviceSelection, state *cursor.State,
) error {
	if devices.IDs == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	team, err := s.backend.DeviceNames(ctx, c.key.TeamID)
	if err != nil {
		return err
	}
	state.IDs, err = devices.From(team)
	return err
}

// readSince reads the starting point. Its age matters on a first page only.
func (s *server) readSince(q httpedge.Query) (*time.Time, error) {
	since, err := roomsensor.ParseInstant(sinceParameter, q.Get(sinceParameter))
	if err != nil || since == nil || q.Get(cursorParameter) != nil {
		return since, err
	}
	now := s.now()
	if since.After(now) {
		return nil, roomsensor.NewError(roomsensor.CodeTimeRangeInvalid, sinceParameter,
			"since is in the future. Leave it out to begin now.")
	}
	if oldest := now.Add(-roomsensor.FeedReach); since.Before(oldest) {
		return nil, roomsensor.NewError(roomsensor.CodeTimeRangeTooWide, sinceParameter, "since is more than 30 days ago; "+
			"the earliest is "+roomsensor.FormatTime(oldest)+". To get older readings, note the time, export them with "+
			"GET /readings.csv, and then send that time as since.")
	}
	return since, nil
}

// readWait reads how long a request may be held.
func readWait(text *string) (time.Duration, error) {
	if text == nil {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(*text, 10, 8)
	if err != nil || seconds > maxWait {
		return 0, roomsensor.Invalid(waitParameter, "wait must be a whole number of seconds from 0 to 30.")
	}
	return time.Duration(seconds) * time.Second, nil
}

// sameChanges compares the parameters that were sent with a cursor with those of the first page (decision 12).
func sameChanges(q httpedge.Query, since *time.Time, devices httpedge.DeviceSelection, state *cursor.State) error {
	return q.Compare(func(p httpedge.Parameter) bool {
		switch p.Name {
		case sinceParameter:
			return sameInstant(since, state.Request.From)
		case devicesParameter:
			return state.IDs != nil && slices.Equal(httpedge.SortedIDs(devices.IDs), state.IDs)
		}
		return httpedge.SameFilter(p, state, externalRefParameter, includeParameter)
	})
}
