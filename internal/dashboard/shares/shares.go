// Package shares is the pages of links with which people outside of a team see one thing of it.
package shares

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/wording"
)

// Backend stores shared links.
type Backend interface {
	// Share returns an error of the rule about the parameter share if the team has too many links, and ErrNotFound for
	// what does not belong to the team.
	Share(ctx context.Context, teamID uuid.UUID, what accounts.Shared, link accounts.NewLink) error
	SharedLink(ctx context.Context, token string) (accounts.SharedLink, error)
	SharedLinks(ctx context.Context, teamID uuid.UUID) ([]accounts.SharedLink, error)
	RevokeShare(ctx context.Context, teamID, shareID uuid.UUID) error
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
	page.Audit
}

const (
	// maxShared is how many pages of links are made at the same time: half of those of nights, so that people who spread a
	// link do not keep members waiting.
	maxShared  = 2
	sharedBusy = "Too many people have opened shared links. Try again in a few seconds."
)

// Content shows what links are for.
type Content struct {
	Night  func(ctx context.Context, v *page.Visit, night time.Time) error
	Person func(ctx context.Context, v *page.Visit, assignmentID uuid.UUID) error
	Wall   func(ctx context.Context, v *page.Visit, deviceIDs []uuid.UUID) error
	// Rooms lists the devices that people can choose for a wall.
	Rooms func(ctx context.Context, v *page.Visit) ([]page.Choice, error)
}

// Pages are the pages of shared links.
type Pages struct {
	backend Backend
	content Content
	url     string // base of links to the dashboard
	running *fairshare.Limiter
}

// New returns the pages.
func New(backend Backend, content Content, url string) *Pages {
	return &Pages{backend, content, url, page.NewTeamLimiter("shared", 1, maxShared, sharedBusy)}
}

// Show shows what a link is for. The link is checked with each request.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	link, err := p.backend.SharedLink(ctx, v.Echo.Param("token"))
	if errors.Is(err, roomsensor.ErrNotFound) {
		return v.Write(http.StatusNotFound, "share-ended", nil)
	}
	if err != nil {
		return err
	}
	held, err := p.running.Acquire(ctx, fairshare.Owner{Team: link.Team.ID}, 1)
	if err != nil {
		return err
	}
	defer held.Release()
	v.Team = link.Team
	switch {
	case link.Night != nil:
		return p.content.Night(ctx, v, *link.Night)
	case link.AssignmentID != nil:
		return p.content.Person(ctx, v, *link.AssignmentID)
	}
	return p.content.Wall(ctx, v, link.DeviceIDs)
}

// sharesView is the data of web/pages/shares.html.
type sharesView struct {
	What          string // that the form shares
	Night, Person string // that the form shares; empty for rooms
	OfRooms       bool   // whether it shares rooms
	Rooms         []page.Choice
	Days          []page.Choice
	Link          string // that was just made; shown once
	Until         time.Time
	Links         []linkView
	Errors        page.FormErrors
}

// linkView is a link of the list.
type linkView struct {
	accounts.SharedLink

	What string
}

// lifetimes are for how many days a link can work. The first one is the default.
var lifetimes = []int{7, 1, 30, 365}

// form is a form that makes a link, as entered.
type form struct {
	night, person string
	devices       []string
	days          int
}

// List shows the links of a team, and the form that makes one for what the query names.
func (p *Pages) List(ctx context.Context, v *page.Visit) error {
	f := form{night: v.Echo.QueryParam("night"), person: v.Echo.QueryParam("person"), days: lifetimes[0]}
	_, view, err := p.view(ctx, v, &f)
	if err != nil {
		return err
	}
	return v.Render("shares", view)
}

// view returns what a form shares, and the page.
func (p *Pages) view(
	ctx context.Context, v *page.Visit, f *form,
) (what accounts.Shared, view *sharesView, err error) {
	view = &sharesView{Night: f.night, Person: f.person, Errors: page.FormErrors{}}
	switch {
	case f.night != "":
		night, err := time.Parse(time.DateOnly, f.night)
		if err != nil {
			return what, nil, roomsensor.ErrNotFound
		}
		what.Night = &night
		view.What = nightText(v, night)
	case f.person != "":
		id, err := uuid.Parse(f.person)
		if err != nil {
			return what, nil, roomsensor.ErrNotFound
		}
		assignment, err := p.backend.Assignment(ctx, v.Team.ID, id)
		if err != nil {
			return what, nil, err
		}
		what.AssignmentID = &id
		view.What = personText(assignment.Label)
	default:
		view.OfRooms, view.What = true, "rooms as they are now"
		if view.Rooms, err = p.content.Rooms(ctx, v); err != nil {
			return what, nil, err
		}
		for i := range view.Rooms {
			if room := &view.Rooms[i]; slices.Contains(f.devices, room.Value) {
				room.Chosen = true
				what.DeviceIDs = append(what.DeviceIDs, uuid.MustParse(room.Value))
			}
		}
	}
	for _, days := range lifetimes {
		view.Days = append(view.Days, page.Choice{
			Value: strconv.Itoa(days), Text: wording.Plural(days, "day"), Chosen: days == f.days,
		})
	}
	links, err := p.backend.SharedLinks(ctx, v.Team.ID)
	for i := range links {
		view.Links = append(view.Links, linkView{links[i], textOf(v, &links[i])})
	}
	return what, view, err
}

// textOf says what a link shows.
func textOf(v *page.Visit, link *accounts.SharedLink) string {
	switch {
	case link.Night != nil:
		return nightText(v, *link.Night)
	case link.AssignmentID != nil:
		return personText(link.Person)
	}
	return wording.Plural(len(link.DeviceIDs), "room") + " as they are now"
}

func nightText(v *page.Visit, night time.Time) string {
	return "the night of " + v.Format().Time(night, "Mon 2 Jan 2006")
}

func personText(label string) string { return "the newest nights of " + label }

// Create makes a link, and shows it.
func (p *Pages) Create(ctx context.Context, v *page.Visit) error {
	f := form{night: v.Form("night"), person: v.Form("person"), devices: v.Echo.Request().PostForm["device"]}
	f.days, _ = strconv.Atoi(v.Form("days"))
	what, view, err := p.view(ctx, v, &f)
	if err != nil {
		return err
	}
	if !slices.Contains(lifetimes, f.days) {
		view.Errors.Add("days", "Choose for how long the link works.")
	}
	if n := len(what.DeviceIDs); view.OfRooms && (n == 0 || n > accounts.MaxSharedDevices) {
		view.Errors.Add("device", "Choose 1 to "+strconv.Itoa(accounts.MaxSharedDevices)+" rooms.")
	}
	if len(view.Errors) > 0 {
		return v.Invalid("shares", view)
	}
	token, link := accounts.GenerateLink(v.Now, time.Duration(f.days)*24*time.Hour)
	err = p.backend.Share(ctx, v.Team.ID, what, link)
	if rule, ok := errors.AsType[*roomsensor.Error](err); ok && rule.Param == "share" {
		view.Errors.AddRule(err)
		return v.Invalid("shares", view)
	}
	if err != nil {
		return err
	}
	_, made, err := p.view(ctx, v, &f) // With the link.
	if err != nil {
		return err
	}
	made.Link, made.Until = p.url+accounts.SharedPath(token), link.ExpiresAt
	return v.Render("shares", made)
}

// Revoke ends a link.
func (p *Pages) Revoke(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("share_id")
	if err == nil {
		err = v.AcceptDeleted(ctx, p.backend, id, p.backend.RevokeShare(ctx, v.Team.ID, id))
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("shares"), "The link is revoked.")
}
