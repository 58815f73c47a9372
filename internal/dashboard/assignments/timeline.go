package assignments

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// timelineView is the data of web/pages/assignments.html.
type timelineView struct {
	Problem              string
	Search, Tag, LastDay string
	Days                 int
	Periods              []int
	Earlier, Later       string // last days of the periods before and after; Later is empty if that would be in the future
	Zone                 string
	From, To             time.Time
	Ticks                []timelineTick
	Now                  string // position of the present, or empty
	Rows                 []timelineRow
	Total                int // devices of all pages
	Filtered             bool
	Previous, Next       string // pages, or empty
	Shown                string // such as "1 to 50 of 120 devices"
	Full                 bool   // a device has more assignments than it shows
}

// timelineTick is a day that has a line and a label. X is its position in percent of the width.
type timelineTick struct{ X, Label string }

// timelineRow is a device.
type timelineRow struct {
	ID          uuid.UUID
	Name        string
	HardwareID  string
	Open        *roomsensor.Assignment // nil without one
	Bars        []timelineBar
	Description string // of the bars, for people who do not see them
	Assignments []roomsensor.Assignment
}

// timelineBar is an assignment in the timeline. X and Width are in percent of the width.
type timelineBar struct {
	X, Width, Label, Title, Class string
}

func newTimelineView(v *page.Visit, f *timelineFilter, timeline *roomsensor.Timeline) *timelineView {
	window := f.window()
	view := &timelineView{
		Search: f.search, Tag: f.tag, LastDay: f.last.Format(time.DateOnly), Days: f.days, Periods: timelinePeriods,
		Earlier: f.last.AddDate(0, 0, -f.days).Format(time.DateOnly), Zone: v.Zone().String(),
		From: window.From, To: f.last, Total: timeline.Total, Filtered: f.search != "" || f.tag != "",
		Ticks: timelineTicks(v.Format(), f, window),
	}
	if next := f.last.AddDate(0, 0, f.days); !f.last.After(v.Now.In(v.Zone()).AddDate(0, 0, -1)) {
		view.Later = next.Format(time.DateOnly)
	}
	if window.From.Before(v.Now) && v.Now.Before(window.To) {
		view.Now = position(v.Now, window)
	}
	for i := range timeline.Devices {
		row := newTimelineRow(v, &timeline.Devices[i], window)
		view.Full = view.Full || len(row.Assignments) >= roomsensor.MaxTimelineAssignments
		view.Rows = append(view.Rows, row)
	}
	view.addPages(f.page)
	return view
}

// addPages adds the links to other pages, and which devices this one has.
func (view *timelineView) addPages(number int) {
	first := (number-1)*timelineDevices + 1
	last := first + len(view.Rows) - 1
	if number > 1 {
		view.Previous = strconv.Itoa(number - 1)
	}
	if last < view.Total {
		view.Next = strconv.Itoa(number + 1)
	}
	if view.Previous == "" && view.Next == "" {
		view.Shown = wording.Plural(view.Total, "device")
		return
	}
	view.Shown = strconv.Itoa(first) + " to " + strconv.Itoa(last) + " of " + wording.Plural(view.Total, "device")
}

// maxTickLabels is how many labels fit on a narrow screen.
const maxTickLabels = 5

// timelineTicks returns lines at the same distance in days: as many as have room for their labels.
func timelineTicks(format wording.Format, f *timelineFilter, window roomsensor.Window) (ticks []timelineTick) {
	step := (f.days + maxTickLabels - 1) / maxTickLabels
	for day := 0; day < f.days; day += step {
		at := window.From.AddDate(0, 0, day)
		ticks = append(ticks, timelineTick{position(at, window), format.Time(at, "2 Jan")})
	}
	return ticks
}

// position returns where a time is in a window, in percent.
func position(at time.Time, window roomsensor.Window) string {
	return strconv.FormatFloat(100*share(at, window), 'f', 2, 64)
}

func share(at time.Time, window roomsensor.Window) float64 {
	x := float64(at.Sub(window.From)) / float64(window.To.Sub(window.From))
	return min(max(x, 0), 1)
}

func newTimelineRow(v *page.Visit, d *roomsensor.TimelineDevice, window roomsensor.Window) timelineRow {
	row := timelineRow{
		ID: d.ID, Name: wording.TextOr(d.DisplayName, d.HardwareID), HardwareID: d.HardwareID,
		Open: d.Open(), Assignments: d.Assignments,
	}
	var descriptions []string
	for i := range d.Assignments {
		a := &d.Assignments[i]
		until := v.Now // An open assignment is drawn until now.
		if a.EndedAt != nil {
			until = *a.EndedAt
		}
		if !a.StartedAt.Before(window.To) || !until.After(window.From) {
			continue
		}
		bar := timelineBar{
			X: position(a.StartedAt, window), Label: a.Label, Title: a.Label + ", " + string(a.Type) + ", " + period(v, a),
			Width: strconv.FormatFloat(100*(share(until, window)-share(a.StartedAt, window)), 'f', 2, 64), Class: "ended",
		}
		if a.EndedAt == nil {
			bar.Class = "open"
		}
		row.Bars = append(row.Bars, bar)
		descriptions = append(descriptions, bar.Title)
	}
	row.Description = strings.Join(descriptions, "; ")
	return row
}

// period returns when an assignment began and ended, in the zone of the team.
func period(v *page.Visit, a *roomsensor.Assignment) string {
	if a.EndedAt == nil {
		return "since " + clock(v, a.StartedAt)
	}
	return clock(v, a.StartedAt) + " to " + clock(v, *a.EndedAt)
}

// clock returns a time in the zone of the team, for sentences. Seconds are shown only if there are some, because a
// person who enters the same minute again could not see why it is refused.
func clock(v *page.Visit, at time.Time) string {
	layout := "Mon 2 Jan 2006, 15:04"
	if !at.Equal(at.Truncate(time.Minute)) {
		layout += ":05"
	}
	return v.Time(at, layout)
}
