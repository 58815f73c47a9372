package dashboard

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

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

// rejectFilter is the reason and the unit of the query. A unit that is not a hardware id selects nothing.
type rejectFilter struct {
	Reason, Unit string
	reason       *roomsensor.Reason
	unit         *string
}

// readRejectFilter reads the query of a page. People may enter a unit without dev:.
func readRejectFilter(v *visit) (f rejectFilter) {
	f.Reason, f.Unit = v.echo.QueryParam("reason"), strings.TrimSpace(v.echo.QueryParam("unit"))
	if reason := roomsensor.Reason(f.Reason); slices.Contains(roomsensor.Reasons, reason) {
		f.reason = &reason
	} else {
		f.Reason = ""
	}
	if f.Unit != "" {
		f.Unit = withUnitPrefix(f.Unit)
	}
	if roomsensor.IsHardwareID(f.Unit) {
		f.unit = &f.Unit
	}
	return f
}

// rejectGroupView is a row of the table of groups.
type rejectGroupView struct {
	roomsensor.RejectGroup
	Unit   string // empty if the uploads name none
	Advice roomsensor.Advice
}

// CanReplay reports whether the group can be replayed: it needs a unit, because a group without one has no replayable
// reason.
func (g *rejectGroupView) CanReplay() bool { return g.Advice.Replayable && g.Unit != "" }

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

func (s *server) showRejects(ctx context.Context, v *visit) error {
	view := rejectsView{rejectFilter: readRejectFilter(v), Reasons: roomsensor.Reasons}
	if view.Unit != "" && view.unit == nil {
		view.Invalid = wrongUnit
		return v.invalid("rejects", view)
	}
	page, err := strconv.Atoi(v.echo.QueryParam("page"))
	if err != nil || page < 1 || page > maxGroupPages {
		page = 1
	}
	groups, err := s.backend.RejectGroups(ctx, v.team.ID, roomsensor.RejectGroupQuery{
		Reason: view.reason, HardwareID: view.unit, Skip: (page - 1) * groupsOnPage, Limit: groupsOnPage + 1,
	})
	if err != nil {
		return err
	}
	if page > 1 {
		view.Previous = strconv.Itoa(page - 1)
	}
	if len(groups) > groupsOnPage {
		groups, view.Next = groups[:groupsOnPage], strconv.Itoa(page+1)
	}
	for i := range groups {
		group := rejectGroupView{RejectGroup: groups[i], Advice: groups[i].Reason.Advice()}
		if groups[i].HardwareID != nil {
			group.Unit = *groups[i].HardwareID
		}
		view.Groups = append(view.Groups, group)
	}
	if view.unit != nil {
		if view.Report, err = s.reportUnit(ctx, v, *view.unit, groups); err != nil {
			return err
		}
	}
	return v.render("rejects", view)
}

// rejectListView is the data of the list of single rejects.
type rejectListView struct {
	rejectFilter
	Advice  *roomsensor.Advice
	Rejects []roomsensor.Reject
	Next    string // position of the next page; empty on the last
}

func (s *server) listRejects(ctx context.Context, v *visit) error {
	view := rejectListView{rejectFilter: readRejectFilter(v)}
	query := roomsensor.TeamRejectQuery{Reason: view.reason, HardwareID: view.unit, Limit: rejectsOnPage + 1}
	if at, id, ok := parsePosition(v.echo.QueryParam("after")); ok {
		query.After = &roomsensor.RejectPosition{ReceivedAt: at, ID: id}
	}
	var err error
	if view.Rejects, err = s.backend.TeamRejects(ctx, v.team.ID, query); err != nil {
		return err
	}
	if len(view.Rejects) > rejectsOnPage {
		view.Rejects = view.Rejects[:rejectsOnPage]
		last := &view.Rejects[rejectsOnPage-1]
		view.Next = formatPosition(last.Arrival.At, last.ID)
	}
	if view.reason != nil {
		view.Advice = new(view.reason.Advice())
	}
	return v.render("reject-list", view)
}

// rejectView is the data of the page of one reject.
type rejectView struct {
	roomsensor.Reject
	Unit   string
	Advice roomsensor.Advice
	Text   string // the beginning of the payload, in base64 if it is not text
	Base64 bool
	Cut    bool
	Size   int
}

func (s *server) showReject(ctx context.Context, v *visit) error {
	reject, err := s.findReject(ctx, v)
	if err != nil {
		return err
	}
	view := rejectView{Reject: reject, Advice: reject.Reason.Advice(), Size: len(reject.Payload)}
	if reject.HardwareID != nil {
		view.Unit = *reject.HardwareID
	}
	shown := reject.Payload[:min(len(reject.Payload), maxShownPayload)]
	view.Cut = len(shown) < len(reject.Payload)
	if utf8.Valid(reject.Payload) && !bytes.ContainsRune(reject.Payload, 0) {
		view.Text = strings.ToValidUTF8(string(shown), "")
	} else {
		view.Text, view.Base64 = base64.StdEncoding.EncodeToString(shown), true
	}
	return v.render("reject", view)
}

func (s *server) findReject(ctx context.Context, v *visit) (roomsensor.Reject, error) {
	id, err := v.id("reject_id")
	if err != nil {
		return roomsensor.Reject{}, err
	}
	return s.backend.TeamReject(ctx, v.team.ID, id)
}

// downloadReject answers with the payload as it arrived.
func (s *server) downloadReject(ctx context.Context, v *visit) error {
	reject, err := s.findReject(ctx, v)
	if err != nil {
		return err
	}
	return v.sendFile("reject-"+reject.ID.String()+".json", "application/octet-stream", reject.Payload)
}
