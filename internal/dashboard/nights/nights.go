// Package nights is the pages of what rooms were like in a night.
package nights

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// Backend reads what was measured in the nights of a team.
type Backend interface {
	// NightRooms reads a night of the assignments that overlap it. more reports whether there are others than it returns.
	NightRooms(
		ctx context.Context, teamID uuid.UUID, q airquality.NightQuery,
	) (rooms []airquality.NightRoom, more bool, err error)
	// RoomNights reads nights, the newest first, of the assignments that overlap any of them and that keep selects: for
	// each of them, one result per night.
	RoomNights(
		ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery, keep func(*roomsensor.Assignment) bool,
	) (rooms []airquality.NightRoom, results [][]airquality.NightResult, more bool, err error)
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
	page.Notes
}

const (
	// nightsBefore is the number of nights in the strip of a room.
	nightsBefore = 14
	// nightPage is the number of rooms on a page. With the nights before, they have up to 150,000 readings of 9 hours.
	nightPage = 100
	// maxNights is how many nights are read at the same time, at most page.MaxTeamPages of one team.
	maxNights = 4
	// nightsBusy is the answer to a person who has to wait for others.
	nightsBusy = "Others are reading nights right now. Try again in a few seconds."
)

// Pages are the pages of nights.
type Pages struct {
	backend Backend
	running *fairshare.Limiter
}

// New returns the pages.
func New(backend Backend) *Pages {
	return &Pages{backend, page.NewTeamLimiter("nights", page.MaxTeamPages, maxNights, nightsBusy)}
}

// nightReport is a night with its rooms, in the order of the page.
type nightReport struct {
	night   airquality.Night
	last    airquality.Night // that people mean by last night
	newest  airquality.Night // that has begun last
	query   airquality.NightQuery
	byName  bool
	rooms   []airquality.NightRoom
	more    bool   // whether the team has more rooms
	problem string // of the parameters
}

// readNight reads the night that begins on a date, by default the last one.
func (p *Pages) readNight(ctx context.Context, v *page.Visit, text string) (*nightReport, error) {
	r := &nightReport{byName: v.Echo.QueryParam("sort") == "name"}
	r.last, r.newest = v.Team.Night.LastNight(v.Now, v.Zone())
	r.night = r.last
	if text != "" {
		date, err := time.Parse(time.DateOnly, text)
		switch {
		case err != nil:
			r.problem = "Enter the night as the date on which it begins, such as 2026-01-31."
		case date.After(r.newest.Date):
			r.problem = "This night has not begun yet. Choose an earlier one."
		default:
			r.night = v.Team.Night.Night(date, v.Zone())
		}
	}
	r.query = airquality.NightQuery{Window: r.night.Window, Limits: &v.Team.Limits, Now: v.Now}
	var err error
	if r.rooms, r.more, err = p.backend.NightRooms(ctx, v.Team.ID, r.query); err != nil {
		return nil, err
	}
	airquality.SortRooms(r.rooms, wording.CompareNames())
	if r.byName {
		wording.SortNames(r.rooms, func(room *airquality.NightRoom) string { return room.Assignment.Label })
	}
	return r, nil
}

// Show shows a page of the rooms of the night that the query selects.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	view, err := p.nightView(ctx, v, v.Echo.QueryParam("night"))
	switch {
	case err != nil:
		return err
	case view.Problem != "":
		return v.Invalid("nights", view)
	}
	return v.Render("nights", view)
}

// ShowShared shows a night to somebody who has a link to it.
func (p *Pages) ShowShared(ctx context.Context, v *page.Visit, night time.Time) error {
	view, err := p.nightView(ctx, v, night.Format(time.DateOnly))
	if err != nil {
		return err
	}
	return v.Render("shared-night", view)
}

func (p *Pages) nightView(ctx context.Context, v *page.Visit, night string) (*nightView, error) {
	held, err := p.running.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	r, err := p.readNight(ctx, v, night)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(cmp.Or(v.Echo.QueryParam("page"), "1"))
	pages := max(1, (len(r.rooms)+nightPage-1)/nightPage)
	if err != nil || first < 1 || first > pages {
		first = 1
	}
	rooms := r.rooms[(first-1)*nightPage : min(first*nightPage, len(r.rooms))]
	before := v.Team.Night.Before(r.night, v.Zone(), nightsBefore)
	history, err := p.readHistory(ctx, v, before, rooms)
	if err != nil {
		return nil, err
	}
	notes, err := v.TeamNotes(ctx, p.backend, r.night.Window)
	if err != nil {
		return nil, err
	}
	view := newNightView(v, r)
	view.Page, view.Pages = first, pages
	for n := range pages {
		view.Parts = append(view.Parts, n+1)
	}
	for i := range rooms {
		room := newRoomView(v, r, &rooms[i], before, history[airquality.SleeperOf(&rooms[i].Assignment)])
		room.Notes = notesOf(&rooms[i].Assignment, notes)
		if room.Verdict.Key == "good" {
			view.Good = append(view.Good, room)
		} else {
			view.Rooms = append(view.Rooms, room)
		}
	}
	return view, nil
}
