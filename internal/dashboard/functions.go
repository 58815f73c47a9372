package dashboard

import (
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// noData is what people see instead of a value that is missing.
const noData = "no data"

// functions returns the functions of templates. current returns the visit whose page is rendered.
//
//	asset FILE         path of a file below web/, such as "css/keys.css"
//	path ELEMENT...    path of a page of the team: {{path "devices" .ID}}
//	query NAME VALUE...  this page with other parameters: {{query "range" "7d" "page" ""}}; an empty value removes one
//	time T, date T     a time in the team's zone: "Sun 22 Nov, 14:05" and "Sun 22 Nov"
//	ago T              "4 min ago", with the time as a tooltip
//	number METRIC X    "612 ppm"; X may be a number or a pointer to one
//	plural N WORD      "1 device", "2 devices"; for other plurals {{plural N "person" "people"}}
//	can ROLE           whether the person has at least a role: {{if can "editor"}}
func functions(a *assets, current func() *visit) template.FuncMap {
	return template.FuncMap{
		"asset": a.url,
		"path":  func(elements ...any) string { return current().path(texts(elements)...) },
		"query": func(pairs ...any) (string, error) { return withQuery(current().echo.Request().URL, texts(pairs)) },
		"time": func(at any) (template.HTML, error) {
			return current().timeElement(at, "Mon 2 Jan, 15:04", "Mon 2 Jan 2006, 15:04")
		},
		"date":   func(at any) (template.HTML, error) { return current().timeElement(at, "Mon 2 Jan", "Mon 2 Jan 2006") },
		"ago":    func(at any) (template.HTML, error) { return current().ageElement(at) },
		"number": number,
		"plural": plural,
		"can": func(name string) (bool, error) {
			role, ok := roomsensor.ParseRole(name)
			if !ok {
				return false, fmt.Errorf("no role %q", name)
			}
			return current().role >= role, nil
		},
	}
}

func texts(values []any) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = fmt.Sprint(v)
	}
	return all
}

// withQuery returns the path and query of a page with other values of some parameters. An empty value removes one.
func withQuery(page *url.URL, pairs []string) (string, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("query: %q has no value", pairs[len(pairs)-1])
	}
	query := page.Query()
	for i := 0; i < len(pairs); i += 2 {
		if query.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			query.Del(pairs[i])
		}
	}
	if len(query) == 0 {
		return page.EscapedPath(), nil
	}
	return page.EscapedPath() + "?" + query.Encode(), nil
}

// zone returns the time zone in which the page shows times.
func (v *visit) zone() *time.Location {
	if v.team.TimeZone == nil {
		return time.UTC
	}
	return v.team.TimeZone
}

// timeOf returns a time of a template; ok is false if there is none.
func timeOf(at any) (t time.Time, ok bool, err error) {
	switch at := at.(type) {
	case nil:
		return t, false, nil
	case time.Time:
		return at, !at.IsZero(), nil
	case *time.Time:
		if at == nil {
			return t, false, nil
		}
		return *at, !at.IsZero(), nil
	}
	return t, false, fmt.Errorf("%T is no time", at)
}

// timeElement returns an element with a time in the team's zone, in the long format if its year is not the current one.
func (v *visit) timeElement(at any, format, long string) (template.HTML, error) {
	t, ok, err := timeOf(at)
	if err != nil || !ok {
		return noData, err
	}
	local := t.In(v.zone())
	if local.Year() != v.now.In(v.zone()).Year() {
		format = long
	}
	return element(t, "", local.Format(format)), nil
}

// ageElement returns an element with the age of a time in words.
func (v *visit) ageElement(at any) (template.HTML, error) {
	t, ok, err := timeOf(at)
	if err != nil || !ok {
		return noData, err
	}
	return element(t, t.In(v.zone()).Format("Mon 2 Jan 2006, 15:04"), age(v.now.Sub(t))), nil
}

func element(t time.Time, title, text string) template.HTML {
	if title != "" {
		title = ` title="` + template.HTMLEscapeString(title) + `"`
	}
	start := `<time datetime="` + roomsensor.FormatTime(t.UTC()) + `"` + title + `>`
	return template.HTML(start + template.HTMLEscapeString(text) + `</time>`) //nolint:gosec // Escaped.
}

// age returns a duration before now in words, in its greatest unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + span(-d)
	case d < time.Minute:
		return "just now"
	}
	return span(d) + " ago"
}

// span returns a duration in words, in its greatest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < day:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
	return plural(int(d/day), "day")
}

// metricTexts are the names, units and decimals of metrics for people, in the order of roomsensor.Metrics.
var metricTexts = [roomsensor.MetricCount]struct {
	name, unit string
	decimals   int
}{
	roomsensor.CO2:      {"CO₂", "ppm", 0},
	roomsensor.Temp:     {"Temperature", "°C", 1},
	roomsensor.Humidity: {"Humidity", "%", 0},
	roomsensor.Lux:      {"Light", "lux", 0},
	roomsensor.Sound:    {"Sound", "dB", 0},
}

// number returns a value of a metric with its unit.
func number(m roomsensor.Metric, value any) (string, error) {
	x := reflect.ValueOf(value)
	for x.Kind() == reflect.Pointer && !x.IsNil() {
		x = x.Elem()
	}
	switch {
	case !x.IsValid() || x.Kind() == reflect.Pointer:
		return noData, nil
	case x.CanFloat():
		return digits(m, x.Float()) + "\u00a0" + metricTexts[m].unit, nil // No line break between them.
	}
	return "", fmt.Errorf("%T is no number", value)
}

// digits returns a value of a metric without its unit.
func digits(m roomsensor.Metric, x float64) string {
	text := strings.TrimPrefix(strconv.FormatFloat(x, 'f', metricTexts[m].decimals, 64), "-")
	if x < 0 && strings.ContainsAny(text, "123456789") {
		text = "−" + text
	}
	return text
}

// plural returns a number with a word: "1 device", "2 devices".
func plural(n int, word string, other ...string) string {
	switch {
	case n == 1:
		return "1 " + word
	case len(other) > 0:
		return strconv.Itoa(n) + " " + other[0]
	}
	return strconv.Itoa(n) + " " + word + "s"
}
