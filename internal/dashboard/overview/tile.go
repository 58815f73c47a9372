package overview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// markupAge is the maximum age of the cached markup of a tile: the ages in it are words for minutes.
const markupAge = 15 * time.Second

// markup is a rendered tile.
type markup struct {
	at    time.Time
	style string // the tileStyle
	html  template.HTML
}

// tileView is the data of web/parts/tile.html.
type tileView struct {
	ID         uuid.UUID
	Name       string
	Assignment *roomsensor.Assignment // nil without one, or if its label is the name
	Unassigned bool
	Air        wording.VerdictText
	MeasuredAt *time.Time // of the newest reading
	Old        bool       // the newest reading is not fresh
	Values     []valueView
	Sparkline  template.HTML
	Problem    *problem // nil if nothing needs attention but the air
}

// valueView is the newest value of a metric.
type valueView struct {
	Metric roomsensor.Metric
	Name   string
	Value  float32
	At     *time.Time // nil if it is that of the newest reading
	Old    bool       // the value is not fresh although the newest reading may be
	Air    string     // "stuffy" or "bad" if the value is beyond a limit
	Beyond string     // "high" or "low" then
}

// render returns the markup of a tile, which the pages and streams of the team share. style is the tileStyle.
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

// tileStyle returns a hash of the settings of the team and of the person that the markup of tiles depends on.
func tileStyle(v *page.Visit) string {
	team := &v.Team
	settings := fmt.Sprint(team.TimeZone, team.Night, team.Limits.Limits, team.Limits.Rules, v.Format())
	sum := sha256.Sum256([]byte(settings))
	return hex.EncodeToString(sum[:8])
}

// air returns the verdict on the fresh values of a tile, and the limits that it is by. By day, sound has no limit.
func (t *tile) air(
	team *accounts.TeamSettings, now time.Time, night bool,
) (airquality.Air, airquality.Limits) {
	limits := team.Limits.For(t.ID, t.Metadata)
	var fresh roomsensor.Values
	for _, m := range roomsensor.Metrics {
		if newest := t.newest[m]; newest != (tileValue{}) && isFresh(now, newest.at) {
			fresh.Set(m, newest.value)
		}
	}
	return limits.Judge(&fresh, night), limits
}

func isFresh(now, at time.Time) bool { return roomsensor.StatusAt(now, &at) == roomsensor.Online }

func (t *tile) view(team *accounts.TeamSettings, now time.Time) tileView {
	air, limits := t.air(team, now, team.IsNight(now))
	w := tileView{
		ID: t.ID, Name: t.name, Assignment: t.ActiveAssignment,
		Unassigned: t.ActiveAssignment == nil, Air: wording.VerdictTextOf(air.Verdict), Problem: t.problem(now),
	}
	if a := w.Assignment; a != nil && a.Label == t.name {
		w.Assignment = nil
	}
	if t.Latest == nil {
		return w
	}
	w.MeasuredAt = &t.Latest.BucketAt
	w.Old = !isFresh(now, t.Latest.BucketAt)
	for _, m := range roomsensor.Metrics {
		newest := t.newest[m]
		if newest == (tileValue{}) {
			continue
		}
		value := valueView{Metric: m, Name: wording.MetricTexts[m].Name, Value: newest.value}
		if verdict := air.Of(m); verdict >= airquality.Stuffy {
			value.Air, value.Beyond = verdict.String(), "low"
			if air.High[m] == verdict {
				value.Beyond = "high"
			}
		}
		if !newest.at.Equal(t.Latest.BucketAt) {
			value.At, value.Old = &newest.at, !isFresh(now, newest.at)
		}
		w.Values = append(w.Values, value)
	}
	w.Sparkline = t.sparkline(limits[roomsensor.CO2].High)
	return w
}

// problem is why a room needs attention, other than its air.
type problem struct {
	Text  string
	Since *time.Time // nil if it is not known
	Do    string     // what to do about it
}

// weakSignal is the number of bars up to which uploads get lost.
const weakSignal = 1

// problem returns what people should do about the device, if it is assigned: others may lie in a drawer.
func (t *tile) problem(now time.Time) *problem {
	if t.ActiveAssignment == nil {
		return nil
	}
	switch {
	case t.LastSeenAt == nil:
		return &problem{"No upload yet", nil, "Check that the unit has power, a connection and an upload credential."}
	case t.status != roomsensor.Online:
		return &problem{"Silent", t.LastSeenAt, "Check its power, then its connection."}
	case t.Latest == nil:
		return &problem{"No readings yet", nil, "The unit uploads, but nothing that could be stored. Look at Rejects."}
	case !isFresh(now, t.Latest.BucketAt):
		return &problem{"No new readings", &t.Latest.BucketAt, "The unit uploads old readings only. Check its clock."}
	case t.Signal.Bars != nil && *t.Signal.Bars <= weakSignal:
		return &problem{"Weak signal", nil, "Move the unit towards a window."}
	}
	return nil
}

// sparkline draws the CO2 of 24 hours with its limit, or nothing without a value.
func (t *tile) sparkline(limit airquality.Bound) template.HTML {
	known := slices.DeleteFunc(slices.Clone(t.co2), func(x float32) bool { return math.IsNaN(float64(x)) })
	if len(known) == 0 {
		return ""
	}
	label := fmt.Sprintf("CO₂ of the last 24 hours: hourly means from %.0f to %.0f ppm",
		slices.Min(known), slices.Max(known))
	return chart.Sparkline(t.co2, cmp.Or(limit.Bad, limit.Warn), chart.Size{Width: 96, Height: 24}, label)
}
