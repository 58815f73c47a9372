package nights

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

const (
	// peopleNights is the number of nights on the page of all people, of which a phone shows weekNights.
	peopleNights, weekNights = 14, 7
	// peoplePage is the number of people on a page.
	peoplePage = 100
	// maxPeople is how many people are compared: their nights have up to 600,000 readings of 9 hours.
	maxPeople = 400
)

// personRow is a person with some nights, the newest first.
type personRow struct {
	*airquality.NightHistory

	ID          uuid.UUID // of the newest assignment, which names the person in addresses
	Label       string
	bad, stuffy int // nights of the week
	Cells       []nightCellView
}

// nightCellView is one night of a person.
type nightCellView struct {
	Date    string // such as Mon 2 Jan
	Link    string // to the room of that night; empty without one
	Verdict wording.VerdictText
	Time    string // that made the night bad or stuffy
	Away    bool   // the person had no room
	Old     bool   // not shown on a phone
}

// peopleView is the data of the page of all people.
type peopleView struct {
	Headline    string
	Nights      []nightCellView // the heads of the columns
	People      []personRow
	ByName      bool
	More        bool
	Page, Pages int
	Parts       []int
}

// ShowPeople shows the last nights of everybody who has a room.
func (p *Pages) ShowPeople(ctx context.Context, v *page.Visit) error {
	nights, rows, more, err := p.readPeople(ctx, v)
	if err != nil {
		return err
	}
	view := peopleView{Headline: weekHeadline(rows), More: more, ByName: v.Echo.QueryParam("sort") == "name"}
	for i := range nights {
		date := v.Format().Time(nights[i].Date, "Mon 2 Jan")
		view.Nights = append(view.Nights, nightCellView{Date: date, Old: i >= weekNights})
	}
	view.Pages = max(1, (len(rows)+peoplePage-1)/peoplePage)
	first, err := strconv.Atoi(v.Echo.QueryParam("page"))
	if err != nil || first < 1 || first > view.Pages {
		first = 1
	}
	view.Page = first
	for n := range view.Pages {
		view.Parts = append(view.Parts, n+1)
	}
	view.People = rows[(first-1)*peoplePage : min(first*peoplePage, len(rows))]
	for i := range view.People {
		view.People[i].addCells(v, nights)
	}
	return v.Render("people", view)
}

// readPeople reads the last nights of everybody who has a room, the worst first.
func (p *Pages) readPeople(
	ctx context.Context, v *page.Visit,
) (nights []airquality.Night, rows []personRow, more bool, err error) {
	held, err := p.running.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return nil, nil, false, err
	}
	defer held.Release()
	last, _ := v.Team.Night.LastNight(v.Now, v.Zone())
	nights = append([]airquality.Night{last}, v.Team.Night.Before(last, v.Zone(), peopleNights-1)...)
	people, others := map[airquality.Sleeper]bool{}, false
	rooms, results, more, err := p.backend.RoomNights(ctx, v.Team.ID, queriesOf(v, nights, true),
		func(a *roomsensor.Assignment) bool {
			known := people[airquality.SleeperOf(a)]
			if !known && len(people) == maxPeople {
				others = true
				return false
			}
			people[airquality.SleeperOf(a)] = true
			return true
		})
	if err != nil {
		return nil, nil, false, err
	}
	for _, h := range airquality.GatherNights(rooms, results, len(nights)) {
		newest := h.Newest()
		row := personRow{NightHistory: h, ID: newest.Assignment.ID, Label: newest.Assignment.Label}
		for n := range h.Nights[:weekNights] {
			switch h.Nights[n].Verdict() {
			case airquality.Bad:
				row.bad++
			case airquality.Stuffy:
				row.stuffy++
			case airquality.Good, airquality.Unknown:
			}
		}
		rows = append(rows, row)
	}
	sortPeople(rows, v.Echo.QueryParam("sort") == "name")
	return nights, rows, more || others, nil
}

func sortPeople(rows []personRow, byName bool) {
	slices.SortFunc(rows, func(a, b personRow) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	wording.SortNames(rows, func(r *personRow) string { return r.Label })
	if !byName {
		slices.SortStableFunc(rows, func(a, b personRow) int {
			return cmp.Or(cmp.Compare(b.bad, a.bad), cmp.Compare(b.stuffy, a.stuffy))
		})
	}
}

// weekHeadline answers who slept badly this week. The rows may have any order.
func weekHeadline(rows []personRow) string {
	var worst []string
	most, stuffy := 0, 0
	for i := range rows {
		r := &rows[i]
		if r.bad > most {
			most, worst = r.bad, nil
		}
		if r.bad == most && most > 0 {
			worst = append(worst, r.Label)
		}
		if r.stuffy > 0 {
			stuffy++
		}
	}
	switch {
	case len(rows) == 0:
		return "People"
	case len(worst) == 1:
		return fmt.Sprintf("%s had bad air in %d of the last %d nights", worst[0], most, weekNights)
	case len(worst) > 1:
		return fmt.Sprintf("%d people had bad air in %d of the last %d nights", len(worst), most, weekNights)
	case stuffy > 0:
		return fmt.Sprintf("Nobody had bad air in the last %d nights, %s stuffy air", weekNights,
			wording.Plural(stuffy, "person had", "people had"))
	}
	return fmt.Sprintf("Nobody had bad or stuffy air in the last %d nights", weekNights)
}

func (r *personRow) addCells(v *page.Visit, nights []airquality.Night) {
	for n := range nights {
		r.Cells = append(r.Cells, newNightCellView(v, r.NightHistory, n, &nights[n], r.ID))
		r.Cells[n].Old = n >= weekNights
	}
}

func newNightCellView(
	v *page.Visit, h *airquality.NightHistory, n int, night *airquality.Night, person uuid.UUID,
) nightCellView {
	result := &h.Nights[n]
	cell := nightCellView{Date: v.Format().Time(night.Date, "Mon 2 Jan"), Verdict: wording.VerdictTextOf(result.Verdict())}
	room := h.Worst(n)
	if cell.Away = room == nil; cell.Away {
		return cell
	}
	cell.Link = nightLink(v, room.Assignment.DeviceID, night, &person)
	if cause, ok := result.Cause(result.Verdict(), &room.Limits); ok && result.Verdict() >= airquality.Stuffy {
		cell.Time = wording.HoursAndMinutes(cause.For)
	}
	return cell
}

// DownloadPeople sends the table of all people as CSV.
func (p *Pages) DownloadPeople(ctx context.Context, v *page.Visit) error {
	nights, rows, more, err := p.readPeople(ctx, v)
	if err != nil {
		return err
	}
	if more {
		return roomsensor.Invalid("", "The table has only the first people of this team. Read the nights of all with "+
			"GET /v1/nights.csv.")
	}
	body := []byte("person,external_ref")
	for i := range nights {
		body = append(append(body, ','), nights[i].Date.Format(time.DateOnly)...)
	}
	body = append(body, '\n')
	for i := range rows {
		body = csvenc.AppendField(body, csvenc.Guard(rows[i].Label))
		ref := rows[i].Newest().Assignment.ExternalRef
		if body = append(body, ','); ref != nil {
			body = csvenc.AppendField(body, csvenc.Guard(*ref))
		}
		for n := range nights {
			if body = append(body, ','); rows[i].Worst(n) != nil {
				body = append(body, rows[i].Nights[n].Verdict().String()...)
			}
		}
		body = append(body, '\n')
	}
	name := "people_" + nights[0].Date.Format(time.DateOnly) + ".csv"
	return v.SendFile(name, "text/csv; charset=utf-8", body)
}

// personNights is the number of nights on the page of a person.
const personNights = 30

// personView is the data of the page of a person.
type personView struct {
	Name     string
	Headline string
	Nights   []personNight
	Stays    []stay
	Earlier  string // address
	Later    string // address; empty for the newest nights
	ID       uuid.UUID
	Bars     []nightBar
	Strip    string
	Notes    page.NotesView
}

// personNight is a night of a person.
type personNight struct {
	nightCellView

	Rooms  string
	Advice string
	CO2    string
}

// stay is a time that a person spent in a room.
type stay struct {
	Room     string
	DeviceID uuid.UUID
	From     time.Time
	To       *time.Time
	Export   string // address of the export of its readings
}

// personWindow is what the page of a person shows.
type personWindow struct {
	nights []airquality.Night // the newest first
	window roomsensor.Window  // of the notes: from the first night to the one after the last, or to now
	old    bool               // whether there are newer nights
}

// shownNights returns the nights of the query until, by default the last ones.
func shownNights(v *page.Visit) (w personWindow) {
	newest, _ := v.Team.Night.LastNight(v.Now, v.Zone())
	w.window.To = v.Now
	until, err := time.Parse(time.DateOnly, v.Echo.QueryParam("until"))
	if err == nil && until.Before(newest.Date) && v.Role >= roomsensor.Viewer { // A link shows the newest ones only.
		newest, w.old = v.Team.Night.Night(until, v.Zone()), true
		w.window.To = v.Team.Night.Night(until.AddDate(0, 0, 1), v.Zone()).Window.From
	}
	w.nights = append([]airquality.Night{newest}, v.Team.Night.Before(newest, v.Zone(), personNights-1)...)
	w.window.From = w.nights[personNights-1].Window.From
	return w
}

// ShowPerson shows the nights of a person, who is named by one of the assignments.
func (p *Pages) ShowPerson(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("assignment_id")
	if err != nil {
		return err
	}
	view, err := p.personView(ctx, v, id)
	if err != nil {
		return err
	}
	return v.Render("person", view)
}

// ShowSharedPerson shows the newest nights of a person to somebody who has a link to them.
func (p *Pages) ShowSharedPerson(ctx context.Context, v *page.Visit, id uuid.UUID) error {
	view, err := p.personView(ctx, v, id)
	if err != nil {
		return err
	}
	return v.Render("shared-person", view)
}

func (p *Pages) personView(ctx context.Context, v *page.Visit, id uuid.UUID) (*personView, error) {
	held, err := p.running.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	assignment, err := p.backend.Assignment(ctx, v.Team.ID, id)
	if err != nil {
		return nil, err
	}
	key, ok := assignment.Person()
	if !ok {
		return nil, roomsensor.ErrNotFound
	}
	shown := shownNights(v)
	nights := shown.nights
	rooms, results, _, err := p.backend.RoomNights(ctx, v.Team.ID, queriesOf(v, nights, true),
		func(a *roomsensor.Assignment) bool { return a.IsPerson(key) })
	if err != nil {
		return nil, err
	}
	h := airquality.GatherNights(rooms, results, len(nights))[airquality.Sleeper{Person: key}]
	if h == nil {
		h = airquality.NewNightHistory(len(nights))
	}
	view := &personView{Name: assignment.Label, ID: id}
	view.add(v, h, nights)
	path := v.Path("people", id.String())
	view.Earlier = path + "?until=" + nights[0].Date.AddDate(0, 0, -personNights).Format(time.DateOnly)
	if shown.old {
		view.Later = path + "?until=" + nights[0].Date.AddDate(0, 0, personNights).Format(time.DateOnly)
	}
	view.Notes, err = v.ReadNotes(ctx, p.backend, path, shown.window, func(n *roomsensor.Note) (kept, elsewhere bool) {
		person, ok := n.Person()
		return ok && person == key, false
	})
	return view, err
}

func (view *personView) add(v *page.Visit, h *airquality.NightHistory, nights []airquality.Night) {
	bad := 0
	for n := range nights {
		night := personNight{nightCellView: newNightCellView(v, h, n, &nights[n], view.ID)}
		if room := h.Worst(n); room != nil {
			night.Advice = v.Format().Advice(&h.Nights[n], &room.Limits)
			if metric := &h.Nights[n].Metrics[roomsensor.CO2]; metric.Count > 0 {
				night.CO2 = v.Format().Number(roomsensor.CO2, metric.Mean)
			}
		}
		if h.Nights[n].Verdict() == airquality.Bad {
			bad++
		}
		var names []string
		for i := range h.Rooms[n] {
			names = append(names, wording.TextOr(h.Rooms[n][i].DeviceName, unnamed))
		}
		night.Rooms = strings.Join(names, ", ")
		view.Nights = append(view.Nights, night)
	}
	view.Headline = fmt.Sprintf("%s had bad air in %d of %d nights", view.Name, bad, len(nights))
	view.Bars, view.Strip = nightBars(v.Format(), nights, h.Nights)
	slices.SortFunc(h.Stays, func(a, b airquality.NightRoom) int {
		return b.Assignment.StartedAt.Compare(a.Assignment.StartedAt)
	})
	for i := range h.Stays {
		view.Stays = append(view.Stays, newStay(v, &h.Stays[i]))
	}
}

// unnamed stands for the name of a room whose device has none.
const unnamed = "unnamed device"

// newStay returns the time in a room with the export of its readings, as far as one file may reach back.
func newStay(v *page.Visit, room *airquality.NightRoom) stay {
	a := &room.Assignment
	w := a.Window().Intersect(roomsensor.Window{To: v.Now})
	if oldest := w.To.Add(-roomsensor.MaxWindow); w.From.Before(oldest) {
		w.From = oldest
	}
	return stay{
		Room: wording.TextOr(room.DeviceName, unnamed), DeviceID: a.DeviceID, From: a.StartedAt, To: a.EndedAt,
		Export: v.Path("export") + "?count=1&device=" + a.DeviceID.String() +
			"&from=" + roomsensor.FormatLocal(w.From, v.Zone()) + "&to=" + roomsensor.FormatLocal(w.To, v.Zone()),
	}
}
