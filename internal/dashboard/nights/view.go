package nights

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
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
	Summary        string
	Total          int // of the rooms
	More           bool
	Metrics        []string
	Page, Pages    int
	Parts          []int // the numbers of all pages
	Rooms          []roomView
}

func newNightView(v *page.Visit, r *nightReport) *nightView {
	view := &nightView{
		Title: "Night of " + r.night.Date.Format("Mon 2 Jan 2006"), Date: r.night.Date.Format(time.DateOnly),
		Newest: r.newest.Date.Format(time.DateOnly),
		From:   r.night.Window.From, To: r.night.Window.To, Zone: v.Zone().String(),
		Earlier: r.night.Date.AddDate(0, 0, -1).Format(time.DateOnly),
		ByName:  r.byName, Problem: r.problem, Total: len(r.rooms), More: r.more, Summary: summarize(r.rooms),
	}
	isNewest := r.night.Date.Equal(r.newest.Date)
	if !isNewest {
		view.Later = r.night.Date.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	switch {
	case r.night.Date.Equal(r.last.Date):
		view.Title, view.Begun = "Last night", !isNewest
	case isNewest:
		view.Title = "Tonight"
	}
	usual := time.Duration(v.Team.Night.End-v.Team.Night.Start) * time.Minute
	if usual <= 0 {
		usual += 24 * time.Hour
	}
	if length := view.To.Sub(view.From); length != usual {
		view.Hours = hoursAndMinutes(length)
	}
	if v.Now.Before(view.To) {
		view.RunningUntil = new(roomsensor.BucketOf(v.Now))
	}
	for _, m := range roomsensor.Metrics {
		view.Metrics = append(view.Metrics, page.MetricTexts[m].Name)
	}
	return view
}

// summarize says in a sentence how many rooms were bad.
func summarize(rooms []roomsensor.NightRoom) string {
	bad, silent := 0, 0
	for i := range rooms {
		switch verdictOf(&rooms[i].NightResult).rank {
		case rankBad:
			bad++
		case rankNoData:
			silent++
		}
	}
	text := fmt.Sprintf("%d of %s outside of the thresholds for %s or more", bad,
		page.Plural(len(rooms), "room was", "rooms were"), hoursAndMinutes(briefly))
	if silent > 0 {
		text += "; " + strconv.Itoa(silent) + " without data"
	}
	return text + "."
}

// roomView is a row of the table.
type roomView struct {
	DeviceID   uuid.UUID
	Label      string
	DeviceName *string
	Travel     bool
	Began      *time.Time // if the assignment began during the night
	Ended      *time.Time // if it ended during the night
	Class      string
	Verdict    string
	Coverage   string
	Readings   string
	Incomplete bool
	Metrics    []nightCell
	Bars       []nightBar
	Strip      string // text alternative of Bars
}

// nightCell is what a room measured of one metric.
type nightCell struct {
	Name, Mean, Range string // Mean is empty without data
	Outside           []string
}

func newRoomView(
	v *page.Visit, r *nightReport, room *roomsensor.NightRoom, before []roomsensor.Night, history []roomsensor.NightResult,
) roomView {
	word := verdictOf(&room.NightResult)
	view := roomView{
		DeviceID: room.Assignment.DeviceID, Label: room.Assignment.Label, DeviceName: room.DeviceName,
		Travel: room.Assignment.HomeOrTravel == roomsensor.Travel, Class: word.class, Verdict: word.word,
		Coverage: page.NoData,
	}
	if room.Window.From.After(r.night.Window.From) {
		view.Began = &room.Window.From
	}
	if room.Window.To.Before(r.night.Window.To) {
		view.Ended = &room.Window.To
	}
	if room.Expected > 0 {
		view.Coverage = strconv.Itoa(coverageOf(&room.NightResult)) + "\u00a0%"
		view.Readings = fmt.Sprintf("%d of %d readings", room.Present, room.Expected)
		view.Incomplete = coverageOf(&room.NightResult) < complete
	}
	for _, m := range roomsensor.Metrics {
		view.Metrics = append(view.Metrics, newNightCell(m, &room.Metrics[m], v.Team.Thresholds[m]))
	}
	view.Bars, view.Strip = nightBars(before, history)
	return view
}

func newNightCell(m roomsensor.Metric, result *roomsensor.NightMetric, threshold roomsensor.Threshold) nightCell {
	cell := nightCell{Name: page.MetricTexts[m].Name}
	if result.Count == 0 {
		return cell
	}
	cell.Mean = valueOf(m, result.Mean)
	cell.Range = page.Digits(m, float64(result.Min)) + " to " + valueOf(m, result.Max)
	if result.Below > 0 {
		cell.Outside = append(cell.Outside, timeOutside(result.Below)+" below "+limitOf(m, threshold.Low))
	}
	if result.Above > 0 {
		cell.Outside = append(cell.Outside, timeOutside(result.Above)+" above "+limitOf(m, threshold.High))
	}
	return cell
}

// timeOutside returns the time for which some readings stand.
func timeOutside(readings int) string {
	return hoursAndMinutes(time.Duration(readings) * roomsensor.BucketLength)
}

// valueOf returns a value with its unit.
func valueOf(m roomsensor.Metric, x float32) string {
	text, _ := page.Number(m, x) // It is a number.
	return text
}

// limitOf returns an end of a threshold with its unit, in all its digits.
func limitOf(m roomsensor.Metric, x *float32) string {
	return roomsensor.FormatLimit(x) + "\u00a0" + page.MetricTexts[m].Unit
}
