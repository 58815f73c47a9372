// Package rejects is the pages of the uploads that were rejected: why, how to store them again, and where a unit is.
package rejects

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// Backend has the rejects and the units of a team.
type Backend interface {
	Rejects
	Units
	page.Sources
}

// Replay checks and stores a reject again, as a worker does. It returns what it could not store, with the reasons.
type Replay func(context.Context, roomsensor.Reject) (rest []roomsensor.Reject, err error)

// Pages are the pages of rejects.
type Pages struct {
	backend Backend
	replay  Replay
	replays *fairshare.Limiter
}

// New returns the pages.
func New(backend Backend, replay Replay) *Pages {
	return &Pages{backend, replay, page.NewTeamLimiter("replays", maxTeamReplays, maxAllReplays, replaysBusy)}
}

// Rejects reads the rejects of uploads that came with a credential of a team.
type Rejects interface {
	RejectGroups(
		ctx context.Context, teamID uuid.UUID, q roomsensor.RejectGroupQuery,
	) ([]roomsensor.RejectGroup, error)
	TeamRejects(ctx context.Context, teamID uuid.UUID, q roomsensor.TeamRejectQuery) ([]roomsensor.Reject, error)
	// TeamReject returns a reject with its payload.
	TeamReject(ctx context.Context, teamID, rejectID uuid.UUID) (roomsensor.Reject, error)
	// RejectsOfGroup lists the rejects of a group after a position, the oldest first.
	RejectsOfGroup(
		ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage,
	) ([]roomsensor.RejectPosition, error)
	// CountRejectsOfGroup counts what RejectsOfGroup lists without a limit.
	CountRejectsOfGroup(ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage) (int64, error)
}

const (
	// groupsOnPage and rejectsOnPage are the rows of a table.
	groupsOnPage  = 50
	rejectsOnPage = 50
	// maxGroupPages bounds the groups that people can page to; beyond it, they filter.
	maxGroupPages = 100
	// maxShownPayload is how many bytes of a payload the page shows. The download has all of them.
	maxShownPayload = 16 << 10
)

// rejectFilter is the reason, the unit and the source of the query. A unit that no unit can have selects nothing.
type rejectFilter struct {
	Reason, Unit string
	Source       *roomsensor.ListedSource // nil for all messages
	reason       *roomsensor.Reason
	unit         *string
	source       *uuid.UUID
}

// readRejectFilter reads the query of a page. People may enter a unit without dev:.
func (p *Pages) readRejectFilter(ctx context.Context, v *page.Visit) (f rejectFilter, err error) {
	f.Reason, f.Unit = v.Echo.QueryParam("reason"), strings.TrimSpace(v.Echo.QueryParam("unit"))
	if reason := roomsensor.Reason(f.Reason); slices.Contains(roomsensor.Reasons, reason) {
		f.reason = &reason
	} else {
		f.Reason = ""
	}
	if f.Unit != "" {
		f.Unit = wording.WithUnitPrefix(f.Unit)
	}
	if wording.IsUnit(f.Unit) {
		f.unit = &f.Unit
	}
	if id := v.Echo.QueryParam("source"); id != "" {
		if f.Source, err = v.FindSource(ctx, p.backend, id); err != nil {
			return f, err
		}
		f.source = &f.Source.ID
	}
	return f, nil
}

// rejectGroupView is a row of the table of groups.
type rejectGroupView struct {
	roomsensor.RejectGroup
	Advice roomsensor.Advice
	Report *unitReport // of an unknown unit
}

// Done reports whether everything in the group was replayed, with a unit that is known now.
func (g *rejectGroupView) Done() bool {
	return g.Replayed == g.Count && (g.Report == nil || !g.Report.CanRegister())
}

// CanReplay reports whether the group can be replayed: it needs a unit, because a group without one has no replayable
// reason.
func (g *rejectGroupView) CanReplay() bool { return g.Advice.Replayable && g.Unit != nil }

// rejectsView is the data of the page of groups.
type rejectsView struct {
	rejectFilter
	Invalid  string // what is wrong with the unit that was entered
	Reasons  []roomsensor.Reason
	Groups   []rejectGroupView
	Report   *unitReport // of the unit that was entered
	Previous string      // number of the page before and after; empty if there is none
	Next     string
}

// ShowGroups shows the rejects in groups with one reason and unit.
func (p *Pages) ShowGroups(ctx context.Context, v *page.Visit) error {
	filter, err := p.readRejectFilter(ctx, v)
	if err != nil {
		return err
	}
	view := rejectsView{rejectFilter: filter, Reasons: roomsensor.Reasons}
	if view.Unit != "" && view.unit == nil {
		view.Invalid = wording.WrongUnit
		return v.Invalid("rejects", view)
	}
	number, err := strconv.Atoi(v.Echo.QueryParam("page"))
	if err != nil || number < 1 || number > maxGroupPages {
		number = 1
	}
	groups, err := p.backend.RejectGroups(ctx, v.Team.ID, roomsensor.RejectGroupQuery{
		Reason: view.reason, Unit: view.unit, SourceID: view.source,
		Skip: (number - 1) * groupsOnPage, Limit: groupsOnPage + 1,
	})
	if err != nil {
		return err
	}
	if number > 1 {
		view.Previous = strconv.Itoa(number - 1)
	}
	if len(groups) > groupsOnPage {
		groups, view.Next = groups[:groupsOnPage], strconv.Itoa(number+1)
	}
	for i := range groups {
		group := rejectGroupView{RejectGroup: groups[i], Advice: groups[i].Reason.Advice()}
		if group.Unit != nil && group.Reason == roomsensor.ReasonUnknownUnit {
			if group.Report, err = p.reportUnit(ctx, v, *group.Unit); err != nil {
				return err
			}
		}
		view.Groups = append(view.Groups, group)
	}
	if view.unit != nil {
		if view.Report, err = p.reportEntered(ctx, v, &filter); err != nil {
			return err
		}
	}
	return v.Render("rejects", view)
}

// rejectListView is the data of the list of single rejects.
type rejectListView struct {
	rejectFilter
	Advice  *roomsensor.Advice
	Rejects []roomsensor.Reject
	Next    string // position of the next page; empty on the last
}

// List shows single rejects.
func (p *Pages) List(ctx context.Context, v *page.Visit) error {
	filter, err := p.readRejectFilter(ctx, v)
	if err != nil {
		return err
	}
	view := rejectListView{rejectFilter: filter}
	query := roomsensor.TeamRejectQuery{
		Reason: view.reason, Unit: view.unit, SourceID: view.source, Limit: rejectsOnPage + 1,
	}
	if at, id, ok := page.ParsePosition(v.Echo.QueryParam("after")); ok {
		query.After = &roomsensor.RejectPosition{ReceivedAt: at, ID: id}
	}
	if view.Rejects, err = p.backend.TeamRejects(ctx, v.Team.ID, query); err != nil {
		return err
	}
	if len(view.Rejects) > rejectsOnPage {
		view.Rejects = view.Rejects[:rejectsOnPage]
		last := &view.Rejects[rejectsOnPage-1]
		view.Next = page.FormatPosition(last.Arrival.At, last.ID)
	}
	if view.reason != nil {
		view.Advice = new(view.reason.Advice())
	}
	return v.Render("reject-list", view)
}

// rejectView is the data of the page of one reject.
type rejectView struct {
	roomsensor.Reject
	Advice roomsensor.Advice
	Text   string // the beginning of the payload, in base64 if it is not text
	Base64 bool
	Cut    bool
	Size   int
}

// Show shows a reject with its payload.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	reject, err := p.findReject(ctx, v)
	if err != nil {
		return err
	}
	view := rejectView{Reject: reject, Advice: reject.Reason.Advice(), Size: len(reject.Payload)}
	shown := reject.Payload[:min(len(reject.Payload), maxShownPayload)]
	view.Cut = len(shown) < len(reject.Payload)
	if utf8.Valid(reject.Payload) && !bytes.ContainsRune(reject.Payload, 0) {
		view.Text = strings.ToValidUTF8(string(shown), "")
	} else {
		view.Text, view.Base64 = base64.StdEncoding.EncodeToString(shown), true
	}
	return v.Render("reject", view)
}

func (p *Pages) findReject(ctx context.Context, v *page.Visit) (roomsensor.Reject, error) {
	id, err := v.ID("reject_id")
	if err != nil {
		return roomsensor.Reject{}, err
	}
	return p.backend.TeamReject(ctx, v.Team.ID, id)
}

// Download answers with the payload as it arrived.
func (p *Pages) Download(ctx context.Context, v *page.Visit) error {
	reject, err := p.findReject(ctx, v)
	if err != nil {
		return err
	}
	return v.SendFile("reject-"+reject.ID.String()+".json", "application/octet-stream", reject.Payload)
}
