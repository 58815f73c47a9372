package rejects

import (
	"context"
	"errors"
	"slices"
	"time"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

const (
	// maxReplays and replayTime bound the rejects of one request. A reject may have 10,000 readings.
	maxReplays = 200
	replayTime = 5 * time.Second
	// maxTeamReplays is how many requests of a team replay at the same time in one process, and maxAllReplays those of all
	// teams. Each holds a connection to the database and one payload.
	maxTeamReplays = 1
	maxAllReplays  = 2
	// replaysBusy is the answer to a person who has to wait for others.
	replaysBusy = "Another replay is in progress. Wait until it ends, and try again."
)

// replayView is the data of the page after a replay.
type replayView struct {
	Reason     roomsensor.Reason        // empty for all replayable rejects of a source
	Unit       *string                  // nil for all rejects of a source, or if the upload names none
	Source     *roomsensor.ListedSource // whose rejects were replayed; nil for those of all sources
	Stored     int                      // rejects that are now stored in full
	Incomplete int                      // rejects of which a part could not be stored
	Causes     []replayGap              // why
	Remaining  int64                    // rejects of the group that this request did not reach
	After      string                   // where the next request begins
}

// replayGap is why rejects could not be stored in full.
type replayGap struct {
	Reason  roomsensor.Reason
	Rejects int
	Detail  string // of the first of them
	Advice  roomsensor.Advice
}

// ReplayGroup replays the rejects of a source, of a reason and unit, or both, after a position: the oldest first, as
// many as a request may.
func (p *Pages) ReplayGroup(ctx context.Context, v *page.Visit) error {
	view, group, err := p.readGroup(ctx, v)
	if err != nil {
		return err
	}
	held, err := p.replays.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return err
	}
	defer held.Release()
	found, err := p.backend.RejectsOfGroup(ctx, v.Team.ID, group)
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range found {
		if time.Since(began) > replayTime {
			break
		}
		group.After = found[i]
		reject, err := p.backend.TeamReject(ctx, v.Team.ID, found[i].ID)
		if errors.Is(err, roomsensor.ErrNotFound) {
			continue // A worker deleted it meanwhile.
		}
		if err == nil {
			err = p.replayOne(ctx, reject, &view)
		}
		if err != nil {
			return err
		}
	}
	view.After = page.FormatPosition(group.After.ReceivedAt, group.After.ID)
	if view.Remaining, err = p.backend.CountRejectsOfGroup(ctx, v.Team.ID, group); err != nil {
		return err
	}
	return v.Render("replay", view)
}

// readGroup reads the form of a replay.
func (p *Pages) readGroup(
	ctx context.Context, v *page.Visit,
) (view replayView, g roomsensor.RejectGroupPage, err error) {
	g.Limit = maxReplays
	g.After.ReceivedAt, g.After.ID, _ = page.ParsePosition(v.Form("after")) // Empty at the beginning.
	if id := v.Form("source"); id != "" {
		if view.Source, err = v.FindSource(ctx, p.backend, id); err != nil {
			return view, g, err
		}
		g.Reasons, g.SourceID = roomsensor.ReplayableReasons(), &view.Source.ID
	}
	reason, unit := roomsensor.Reason(v.Form("reason")), v.Form("unit")
	if view.Source != nil && reason == "" {
		return view, g, nil
	}
	if !slices.Contains(roomsensor.Reasons, reason) || roomsensor.CheckName(unit) != nil {
		return view, g, page.ErrMalformed
	}
	view.Reason, view.Unit = reason, &unit
	g.Reasons, g.Unit = []roomsensor.Reason{reason}, &unit
	return view, g, nil
}

// ReplayReject replays one reject.
func (p *Pages) ReplayReject(ctx context.Context, v *page.Visit) error {
	reject, err := p.findReject(ctx, v)
	if err != nil {
		return err
	}
	held, err := p.replays.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return err
	}
	defer held.Release()
	view := replayView{Reason: reject.Reason, Unit: reject.Unit}
	if err := p.replayOne(ctx, reject, &view); err != nil {
		return err
	}
	return v.Render("replay", view)
}

// replayOne replays a reject and counts it.
func (p *Pages) replayOne(ctx context.Context, reject roomsensor.Reject, view *replayView) error {
	rest, err := p.replay(ctx, reject)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		view.Stored++
		return nil
	}
	view.Incomplete++
	for i := range rest {
		at := slices.IndexFunc(view.Causes, func(g replayGap) bool { return g.Reason == rest[i].Reason })
		if at < 0 {
			at = len(view.Causes)
			view.Causes = append(view.Causes, replayGap{
				Reason: rest[i].Reason, Detail: rest[i].Detail, Advice: rest[i].Reason.Advice(),
			})
		}
		view.Causes[at].Rejects++
	}
	return nil
}
