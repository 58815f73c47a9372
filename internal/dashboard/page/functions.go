package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// functions returns the functions of templates. current returns the visit whose page is rendered.
//
//	asset FILE         path of a file below web/, such as "css/keys.css"
//	path ELEMENT...    path of a page of the team: {{path "devices" .ID}}
//	query NAME VALUE...  this page with other parameters: {{query "range" "7d" "page" ""}}; an empty value removes one
//	time T, date T     a time in the team's zone: "Sun 22 Nov, 14:05" and "Sun 22 Nov"
//	ago T              "4 min ago", with the time as a tooltip
//	printed            when the page was made, for prints
//	number METRIC X    "612 ppm"
//	format             how the person reads temperatures, times of day and dates
//	plural N WORD      "1 device", "2 devices"; for other plurals {{plural N "person" "people"}}
//	can ROLE           whether the person has at least a role: {{if can "editor"}}
//	input NAME LABEL VALUE ERROR ATTRIBUTES [HINT]  the data of the template input, of parts/field.html
func functions(a *assets, current func() *Visit) template.FuncMap {
	return template.FuncMap{
		"asset": a.url,
		"path":  func(elements ...any) string { return current().Path(texts(elements)...) },
		"query": func(pairs ...any) (string, error) { return withQuery(current().Echo.Request().URL, texts(pairs)) },
		"time": func(at any) (template.HTML, error) {
			return current().timeElement(at, "Mon 2 Jan, 15:04", "Mon 2 Jan 2006, 15:04")
		},
		"date": func(at any) (template.HTML, error) { return current().timeElement(at, "Mon 2 Jan", "Mon 2 Jan 2006") },
		"ago":  func(at any) (template.HTML, error) { return current().ageElement(at) },
		"printed": func() string {
			v := current()
			return "as of " + v.Time(v.Now, "Mon 2 Jan 2006, 15:04") + " (" + v.Zone().String() + ")"
		},
		"number": func(m roomsensor.Metric, x float32) string { return current().Format().Number(m, x) },
		"format": func() wording.Format { return current().Format() },
		"plural": wording.Plural,
		"input":  newInput,
		"can": func(name string) (bool, error) {
			role, ok := roomsensor.ParseRole(name)
			if !ok {
				return false, fmt.Errorf("no role %q", name)
			}
			return current().Role >= role, nil
		},
	}
}

// input is the data of the template input.
type input struct {
	Name, Label, Value, Error string
	Attributes                template.HTMLAttr
	Hint                      string // empty for none
}

func newInput(name, label, value, problem, attributes string, hint ...string) input {
	//nolint:gosec // The attributes are constants and numbers of the templates.
	return input{name, label, value, problem, template.HTMLAttr(attributes), strings.Join(hint, "")}
}

func texts(values []any) []string {
	all := make([]string, len(values))
	for i, v := range values {
		if optional, ok := v.(*string); ok && optional != nil {
			v = *optional
		}
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

// Choice is a value that a person can choose.
type Choice struct {
	Value, Text string
	Chosen      bool
}

// Zone returns the time zone in which the page shows times.
func (v *Visit) Zone() *time.Location {
	if v.Team.TimeZone == nil {
		return time.UTC
	}
	return v.Team.TimeZone
}

// Format returns how the person reads temperatures, times of day and dates.
func (v *Visit) Format() wording.Format {
	return wording.FormatOf(v.User.Format, v.Echo.Request().Header.Get("Accept-Language"))
}

// DecimalComma reports whether the language that the browser prefers has decimal commas. Spreadsheets in it expect
// semicolons between the cells of a CSV.
func (v *Visit) DecimalComma() bool {
	languages, _, _ := language.ParseAcceptLanguage(v.Echo.Request().Header.Get("Accept-Language"))
	return len(languages) > 0 && strings.Contains(message.NewPrinter(languages[0]).Sprint(number.Decimal(0.5)), ",")
}

// Time formats a time in the team's zone, as wording.Format.Time does.
func (v *Visit) Time(at time.Time, layout string) string {
	return v.Format().Time(at.In(v.Zone()), layout)
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

// timeElement returns an element with a time in the team's zone, in the long layout if its year is not the current one.
func (v *Visit) timeElement(at any, layout, long string) (template.HTML, error) {
	t, ok, err := timeOf(at)
	if err != nil || !ok {
		return wording.NoData, err
	}
	if t.In(v.Zone()).Year() != v.Now.In(v.Zone()).Year() {
		layout = long
	}
	return element(t, "", v.Time(t, layout)), nil
}

// ageElement returns an element with the age of a time in words.
func (v *Visit) ageElement(at any) (template.HTML, error) {
	t, ok, err := timeOf(at)
	if err != nil || !ok {
		return wording.NoData, err
	}
	return element(t, v.Time(t, "Mon 2 Jan 2006, 15:04"), wording.Age(v.Now.Sub(t))), nil
}

func element(t time.Time, title, text string) template.HTML {
	if title != "" {
		title = ` title="` + template.HTMLEscapeString(title) + `"`
	}
	start := `<time datetime="` + roomsensor.FormatTime(t.UTC()) + `"` + title + `>`
	return template.HTML(start + template.HTMLEscapeString(text) + `</time>`) //nolint:gosec // Escaped.
}
