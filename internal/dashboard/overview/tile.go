package overview

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// markupAge is the maximum age of the cached markup of a tile: the ages in it are words for minutes.
const markupAge = 15 * time.Second

// markup is a rendered tile.
type markup struct {
	at    time.Time
	style string // the settings of the team that it depends on
	html  template.HTML
}

// tileView is the data of web/parts/tile.html.
type tileView struct {
	ID         uuid.UUID
	Name       string
	HardwareID string // empty if it is the name
	Status     page.StatusText
	SeenAt     *time.Time
	MeasuredAt *time.Time // of the newest reading
	Old        bool       // the newest reading is not fresh
	Values     []valueView
	Sparkline  template.HTML
	Assignment *roomsensor.Assignment
}

// valueView is the newest value of a metric.
type valueView struct {
	Metric  roomsensor.Metric
	Name    string
	Value   *float32   // nil without one
	At      *time.Time // nil if it is that of the newest reading
	Old     bool       // the value is not fresh although the newest reading may be
	Outside string     // "high" or "low" if the value is outside the thresholds of the team
}

func (t *tile) statusText() page.StatusText { return page.StatusTextOf(t.status, t.LastSeenAt) }

// render returns the markup of a tile, which all pages and streams of the team share. style is the tileStyle of the
// team.
func (t *tile) render(v *page.Visit, style string) (template.HTML, error) {
	if m := t.markup.Load(); m != nil && m.style == style && v.Now.Sub(m.at).Abs() < markupAge {
		return m.html, nil
	}
	body, err := v.Part("overview", "tile", t.view(&v.Team, v.Now))
	if err != nil {
		return "", err
	}
	m := &markup{at: v.Now, style: style, html: template.HTML(body)} //nolint:gosec // The template escaped it.
	t.markup.Store(m)
	return m.html, nil
}

// tileStyle returns what the markup of tiles depends on.
func tileStyle(team *roomsensor.TeamSettings) string {
	return fmt.Sprint(team.TimeZone, team.Thresholds)
}

func (t *tile) view(team *roomsensor.TeamSettings, now time.Time) tileView {
	w := tileView{
		ID: t.ID, Name: t.name, Status: t.statusText(), SeenAt: t.LastSeenAt, Assignment: t.ActiveAssignment,
	}
	if t.name != t.HardwareID {
		w.HardwareID = t.HardwareID
	}
	if t.Latest == nil {
		return w
	}
	w.MeasuredAt = &t.Latest.BucketAt
	w.Old = roomsensor.StatusAt(now, w.MeasuredAt) != roomsensor.Online
	for _, m := range roomsensor.Metrics {
		value := valueView{Metric: m, Name: page.MetricTexts[m].Name}
		if newest := t.newest[m]; newest != (tileValue{}) {
			value.Value = &newest.value
			value.Outside = outside(team.Thresholds[m], newest.value)
			if !newest.at.Equal(t.Latest.BucketAt) {
				value.At, value.Old = &newest.at, roomsensor.StatusAt(now, &newest.at) != roomsensor.Online
			}
		}
		w.Values = append(w.Values, value)
	}
	w.Sparkline = t.sparkline(team.Thresholds[roomsensor.CO2])
	return w
}

// outside returns "high" or "low" for a value outside of a threshold.
func outside(t roomsensor.Threshold, x float32) string {
	switch {
	case t.IsAbove(x):
		return "high"
	case t.IsBelow(x):
		return "low"
	}
	return ""
}

const (
	// sparklineLow is the CO2 of fresh air, about.
	sparklineLow = 400
	// sparklineHigh is the least upper end of the scale.
	sparklineHigh = 1200
)

// sparkline draws the CO2 of 24 hours, or nothing without a value. Its scale reaches the threshold of the team.
func (t *tile) sparkline(threshold roomsensor.Threshold) template.HTML {
	least, greatest, found := float32(0), float32(0), false
	for _, x := range t.co2 {
		if math.IsNaN(float64(x)) {
			continue
		}
		if !found {
			least, greatest, found = x, x, true
		}
		least, greatest = min(least, x), max(greatest, x)
	}
	if !found {
		return ""
	}
	high := float32(sparklineHigh)
	if threshold.High != nil {
		high = *threshold.High
	}
	label := fmt.Sprintf("CO₂ of the last 24 hours: hourly means from %.0f to %.0f ppm", least, greatest)
	return chart.Sparkline(t.co2, sparklineLow, high, chart.Size{Width: 96, Height: 24}, label)
}
