// Package assignments has the assignments of all devices of a team, and the form that changes them.
package assignments

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// Backend reads and changes the assignments of a team.
type Backend interface {
	Timeline(ctx context.Context, teamID uuid.UUID, q roomsensor.TimelineQuery) (roomsensor.Timeline, error)
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)
	EachDevice(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, do func(*roomsensor.Device),
	) error
	DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error)
	OpenAthletes(ctx context.Context, teamID uuid.UUID, limit int) ([]roomsensor.DeviceAssignment, error)
	KnownAthletes(ctx context.Context, teamID uuid.UUID, limit int) ([]roomsensor.AthleteName, error)
	page.Audit
	// ChangeAssignments calls accept before it saves a change, and saves nothing if accept returns an error. Its error is
	// a NotFoundError, an AssignmentConflictError that names the assignment in the way, or that of accept.
	ChangeAssignments(
		ctx context.Context, teamID uuid.UUID, change roomsensor.AssignmentChange,
		accept func(roomsensor.AssignmentOutcome) error,
	) (roomsensor.AssignmentOutcome, error)
}

// Pages are the pages of assignments.
type Pages struct{ backend Backend }

// New returns the pages.
func New(backend Backend) *Pages { return &Pages{backend} }

const (
	// timelineDevices is how many devices a page has. The store bounds the assignments of each.
	timelineDevices = 50
	// maxTimelinePage bounds the devices that the database skips.
	maxTimelinePage = 1000
	// defaultTimelineDays is the period that is shown at first.
	defaultTimelineDays = 14
)

// timelinePeriods are the periods that people can choose, in days.
var timelinePeriods = []int{7, defaultTimelineDays, 30, 90}

// timelineFilter selects a page. All of it is in the query of its address.
type timelineFilter struct {
	search, tag string
	metadata    map[string]string
	last        time.Time // first instant of the last day, in the zone of the team
	days        int
	page        int // from 1
}

// readTimelineFilter reads a filter. problem is a sentence about a value that is not valid, which is left out.
func readTimelineFilter(query url.Values, now time.Time) (f timelineFilter, problem string) {
	year, month, day := now.Date()
	f = timelineFilter{
		search: strings.TrimSpace(query.Get("q")), tag: strings.TrimSpace(query.Get("tag")),
		last: time.Date(year, month, day, 0, 0, 0, 0, now.Location()), days: defaultTimelineDays, page: 1,
	}
	if utf8.RuneCountInString(f.search) > roomsensor.MaxDisplayName {
		f.search, problem = "", "The search has more than 200 characters. Search for a part of the name."
	}
	if key, value, ok := strings.Cut(f.tag, "="); ok {
		f.metadata = map[string]string{key: value}
	} else if f.tag != "" {
		f.tag, problem = "", "Write a tag as KEY=VALUE, such as building=gym."
	}
	if text := query.Get("last"); text != "" {
		last, err := time.ParseInLocation(time.DateOnly, text, now.Location())
		if err != nil || last.Year() < 2000 || last.After(f.last.AddDate(1, 0, 0)) {
			problem = "Choose a last day between 2000 and a year from now."
		} else {
			f.last = last
		}
	}
	for _, days := range timelinePeriods {
		if query.Get("days") == strconv.Itoa(days) {
			f.days = days
		}
	}
	if text := query.Get("page"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > maxTimelinePage {
			return f, "There is no such page. Start with the first one."
		}
		f.page = number
	}
	return f, problem
}

// window returns the period from the first day to the end of the last one.
func (f *timelineFilter) window() roomsensor.Window {
	return roomsensor.Window{From: f.last.AddDate(0, 0, 1-f.days), To: f.last.AddDate(0, 0, 1)}
}

// ShowTimeline shows the assignments of the devices of a team on a time line.
func (p *Pages) ShowTimeline(ctx context.Context, v *page.Visit) error {
	filter, problem := readTimelineFilter(v.Echo.QueryParams(), v.Now.In(v.Zone()))
	window := filter.window()
	timeline, err := p.backend.Timeline(ctx, v.Team.ID, roomsensor.TimelineQuery{
		Window: window, Metadata: filter.metadata, Search: filter.search,
		Limit: timelineDevices, Skip: (filter.page - 1) * timelineDevices,
	})
	if err != nil {
		return err
	}
	view := newTimelineView(v, &filter, &timeline)
	view.Problem = problem
	return v.Render("assignments", view)
}
