package nights

import (
	"cmp"
	"fmt"
	"html/template"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// nightView is the data of the page of a night.
type nightView struct {
	Title          string
	Date           string // on which the night begins, as in the query
	Newest         string // date of the newest night
	From, To       time.Time
	Hours          string // its length if it is not the usual one
	Zone           string
	RunningUntil   *time.Time // until when its readings are expected; nil if it is over
	Earlier, Later string     // dates; Later is empty for the newest night
	Begun          bool       // another night has begun after the last one
	ByName         bool
	Problem        string
	Headline       string // the answer; empty without rooms
	Others         string // what other rooms were like
	Total          int    // of the rooms
	More           bool
	Page, Pages    int
	Parts          []int // the numbers of all pages
	Rooms          []roomView
	Good           []roomView
}

func newNightView(v *page.Visit, r *nightReport) *nightView {
	view := &nightView{
		Title: "Night of " + v.Format().Time(r.night.Date, "Mon 2 Jan 2006"), Date: r.night.Date.Format(time.DateOnly),
		Newest: r.newest.Date.Format(time.DateOnly),
		From:   r.night.Window.From, To: r.night.Window.To, Zone: v.Zone().String(),
		Earlier: r.night.Date.AddDate(0, 0, -1).Format(time.DateOnly),
		ByName:  r.byName, Problem: r.problem, Total: len(r.rooms), More: r.more,
	}
	isNewest := r.night.Date.Equal(r.newest.Date)
	if !isNewest {
		view.Later = r.night.Date.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	when := "in the night of " + v.Format().Time(r.night.Date, "Mon 2 Jan 2006")
	switch {
	case r.night.Date.Equal(r.last.Date):
		view.Title, view.Begun, when = "Last night", !isNewest, "last night"
	case isNewest:
		view.Title, when = "Tonight", "tonight so far"
	}
	view.Headline, view.Others = wording.NightSummary(r.rooms, when)
	usual := time.Duration(v.Team.Night.End-v.Team.Night.Start) * time.Minute
	if usual <= 0 {
		usual += 24 * time.Hour
	}
	if length := view.To.Sub(view.From); length != usual {
		view.Hours = wording.HoursAndMinutes(length)
	}
	if v.Now.Before(view.To) {
		view.RunningUntil = new(roomsensor.BucketOf(v.Now))
	}
	return view
}

// roomView is a room of the list.
type roomView struct {
	Label      string
	DeviceName *string
	Travel     bool
	Link       string     // to the course of the night
	Person     *uuid.UUID // an assignment of the athlete; nil for a place
	Began      *time.Time // if the assignment began during the night
	Ended      *time.Time // if it ended during the night
	Verdict    wording.VerdictText
	Advice     string
	Readings   string // empty if all are there
	Metrics    []nightCell
	Sparkline  template.HTML
	Bars       []nightBar
	Strip      string // text alternative of Bars
	Notes      []roomsensor.Note
}

// nightCell is what a room measured of one metric.
type nightCell struct {
	Name, Mean, Range string
	Class             string // of the verdict
	Beyond            []string
}

func newRoomView(
	v *page.Visit, r *nightReport, room *airquality.NightRoom, before []airquality.Night, past *airquality.NightHistory,
) roomView {
	view := roomView{
		Label:  room.Assignment.Label,
		Travel: room.Assignment.HomeOrTravel == roomsensor.Travel, Verdict: wording.VerdictTextOf(room.Verdict()),
		Advice: v.Format().Advice(&room.NightResult, &room.Limits), Sparkline: sparkline(v.Format(), room),
		Link: nightLink(v, room.Assignment.DeviceID, &r.night, nil),
	}
	if room.Assignment.Type == roomsensor.Athlete {
		view.Person = &room.Assignment.ID
	}
	if name := room.DeviceName; name != nil && *name != view.Label {
		view.DeviceName = name
	}
	if room.Window.From.After(r.night.Window.From) {
		view.Began = &room.Window.From
	}
	if room.Window.To.Before(r.night.Window.To) {
		view.Ended = &room.Window.To
	}
	if room.Present < room.Expected {
		view.Readings = fmt.Sprintf("%d of %d readings", room.Present, room.Expected)
	}
	for _, m := range roomsensor.Metrics {
		if room.Metrics[m].Count > 0 {
			view.Metrics = append(view.Metrics, newNightCell(v.Format(), m, &room.Metrics[m], &room.Limits[m]))
		}
	}
	view.Bars, view.Strip = nightBars(v.Format(), before, past.Nights)
	return view
}

func newNightCell(
	f wording.Format, m roomsensor.Metric, result *airquality.NightMetric, limit *airquality.Limit,
) nightCell {
	cell := nightCell{Name: wording.MetricTexts[m].Name, Mean: f.Number(m, result.Mean)}
	cell.Range = f.Digits(m, result.Min) + " to " + f.Number(m, result.Max)
	for _, v := range []airquality.Verdict{airquality.Bad, airquality.Stuffy} {
		for _, high := range []bool{false, true} {
			count, at := result.Low.At(v), limit.Low.At(v)
			if high {
				count, at = result.High.At(v), limit.High.At(v)
			}
			if count == 0 || v == airquality.Stuffy && cell.Class == "bad" {
				continue
			}
			cell.Class = wording.VerdictTextOf(v).Key
			cell.Beyond = append(cell.Beyond, f.Beyond(airquality.Cause{
				Metric: m, High: high, Limit: *at, For: airquality.Buckets(count),
			}))
		}
	}
	return cell
}

// sparkline draws CO₂ over the night with its limit, or nothing without a value.
func sparkline(f wording.Format, room *airquality.NightRoom) template.HTML {
	metric := &room.Metrics[roomsensor.CO2]
	if metric.Count == 0 {
		return ""
	}
	values := make([]float32, len(room.CO2))
	for i, mean := range room.CO2 {
		values[i] = mean.Value()
	}
	high := room.Limits[roomsensor.CO2].High
	limit := cmp.Or(high.Bad, high.Warn)
	label := "CO₂ over the night, from " + f.Digits(roomsensor.CO2, metric.Min) + " to " +
		f.Number(roomsensor.CO2, metric.Max)
	return chart.Sparkline(values, limit, chart.Size{Width: 192, Height: 32}, label)
}
