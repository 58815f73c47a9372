package devices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// Comparison reads what the page of a comparison shows, beside DevicePage.
type Comparison interface {
	DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error)
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
	// AssignmentsIn returns the assignments of a team that overlap a window.
	AssignmentsIn(ctx context.Context, teamID uuid.UUID, w roomsensor.Window) ([]roomsensor.Assignment, error)
}

// maxCompared is how many lines a comparison has, of which each has its own color and dashes.
const maxCompared = 4

// comparisonRanges are the windows of a comparison. They end now.
var comparisonRanges = []comparisonRange{
	{"24h", "24 hours", "day", 1}, {"7d", "7 days", "7 days", 7}, {"30d", "30 days", "30 days", 30},
}

type comparisonRange struct {
	Key, Name string
	before    string // as in "the 7 days before"
	days      int
}

// hourly reports whether hours are compared, not single readings.
func (r comparisonRange) hourly() bool { return r.days > 7 }

// comparisonView is the data of the page that compares rooms and people.
type comparisonView struct {
	Headline string
	Fields   []comparisonField
	Metrics  []page.Choice
	Before   bool // whether the time before is compared too
	Range    string
	Window   roomsensor.Window
	Zone     *time.Location
	Lines    []comparedLine
	Metric   metricChart
	Errors   page.FormErrors
}

// Ranges returns the windows of the page.
func (*comparisonView) Ranges() []comparisonRange { return comparisonRanges }

// comparisonField is one of the fields in which a room or a person is chosen.
type comparisonField struct {
	ID, Label     string
	Rooms, People []page.Choice
}

// comparedLine is one line of the chart.
type comparedLine struct {
	Number          int // from 1
	Name            string
	Link            string // to the room or the person
	Mean, Low, High string // with units; empty without readings

	points []chart.Point
	mean   float64
}

// compared is a room, or a person with the rooms that the person had.
type compared struct {
	value, name, link string
	parts             []devicePart // ascending
}

// devicePart is a time in which the readings of a device belong to what is compared.
type devicePart struct {
	device uuid.UUID
	window roomsensor.Window
}

// comparison is what the query of the page asks for.
type comparison struct {
	items  []compared
	metric roomsensor.Metric
	length comparisonRange
	window roomsensor.Window
	before roomsensor.Window // the time before; empty if it is not compared
	// assignments are those of both windows.
	assignments []roomsensor.Assignment
}

// ShowComparison compares one metric of up to four rooms and people, or of up to two with the time before.
func (p *Pages) ShowComparison(ctx context.Context, v *page.Visit) error {
	c, err := p.readComparison(ctx, v)
	if err != nil {
		return err
	}
	view := &comparisonView{
		Range: c.length.Key, Window: c.window, Zone: v.Zone(), Before: !c.before.Empty(), Errors: page.FormErrors{},
	}
	if err := p.addFields(ctx, v, view, c); err != nil {
		return err
	}
	if view.Before && 2*len(c.items) > maxCompared {
		view.Headline = view.headline(c.metric)
		view.Errors.Add("before", "Choose at most two rooms or people to compare them with the time before.")
		return v.Invalid("compare", view)
	}
	if err := p.addLines(ctx, v, view, c); err != nil {
		return err
	}
	view.Headline = view.headline(c.metric)
	return v.Render("compare", view)
}

// readComparison reads the query. Without parameters, it is CO2 of the last 7 days.
func (p *Pages) readComparison(ctx context.Context, v *page.Visit) (c *comparison, err error) {
	c = &comparison{metric: roomsensor.CO2, length: comparisonRanges[1]}
	for _, r := range comparisonRanges {
		if r.Key == v.Echo.QueryParam("range") {
			c.length = r
		}
	}
	for _, m := range roomsensor.Metrics {
		if m.String() == v.Echo.QueryParam("metric") {
			c.metric = m
		}
	}
	local := v.Now.In(v.Zone()).Truncate(time.Second)
	c.window = roomsensor.Window{From: local.AddDate(0, 0, -c.length.days).UTC(), To: local.UTC()}
	if c.length.hourly() {
		c.window.From = c.window.From.Truncate(time.Hour) // The first hour is whole.
	}
	both := c.window
	if v.Echo.QueryParam("before") != "" {
		both.From = both.From.In(v.Zone()).AddDate(0, 0, -c.length.days).UTC()
		c.before = roomsensor.Window{From: both.From, To: c.window.From}
	}
	if c.assignments, err = p.backend.AssignmentsIn(ctx, v.Team.ID, both); err != nil {
		return nil, err
	}
	c.items, err = p.comparedItems(ctx, v, c.assignments)
	return c, err
}

// comparedItems returns what the query names, each once: room-ID of a device, or person-ID of an assignment.
func (p *Pages) comparedItems(
	ctx context.Context, v *page.Visit, assignments []roomsensor.Assignment,
) (items []compared, err error) {
	for _, value := range v.Echo.QueryParams()["with"] {
		known := slices.ContainsFunc(items, func(c compared) bool { return c.value == value })
		if value == "" || known || len(items) == maxCompared {
			continue
		}
		kind, text, _ := strings.Cut(value, "-")
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, roomsensor.ErrNotFound
		}
		var item compared
		switch kind {
		case "room":
			item, err = p.comparedRoom(ctx, v, id)
		case "person":
			item, err = p.comparedPerson(ctx, v, id, assignments)
		default:
			err = roomsensor.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		item.value = value
		items = append(items, item)
	}
	return items, nil
}

func (p *Pages) comparedRoom(ctx context.Context, v *page.Visit, id uuid.UUID) (compared, error) {
	device, err := p.backend.Device(ctx, v.Team.ID, id)
	return compared{
		name: wording.TextOr(device.DisplayName, device.HardwareID), link: v.Path("devices", id.String()),
		parts: []devicePart{{id, roomsensor.Window{To: roomsensor.Forever}}},
	}, err
}

// comparedPerson returns the person whom an assignment names, with the rooms of the assignments of the person.
func (p *Pages) comparedPerson(
	ctx context.Context, v *page.Visit, id uuid.UUID, assignments []roomsensor.Assignment,
) (compared, error) {
	assignment, err := p.backend.Assignment(ctx, v.Team.ID, id)
	if err != nil {
		return compared{}, err
	}
	key, ok := assignment.Person()
	if !ok {
		return compared{}, roomsensor.ErrNotFound
	}
	c := compared{name: assignment.Label, link: v.Path("people", id.String())}
	for i := range assignments {
		if a := &assignments[i]; a.IsPerson(key) {
			c.parts = append(c.parts, devicePart{a.DeviceID, a.Window()})
		}
	}
	slices.SortFunc(c.parts, func(a, b devicePart) int { return a.window.From.Compare(b.window.From) })
	return c, nil
}

// addFields adds the fields with their choices: all rooms, and everybody who had one in the window.
func (p *Pages) addFields(
	ctx context.Context, v *page.Visit, view *comparisonView, c *comparison,
) error {
	devices, err := p.backend.DeviceNames(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	var rooms, people []page.Choice
	for i := range devices {
		if name := devices[i].DisplayName; name != nil {
			rooms = append(rooms, page.Choice{Value: "room-" + devices[i].ID.String(), Text: *name})
		}
	}
	for _, a := range newestOfPeople(c.assignments, c.window) {
		people = append(people, page.Choice{Value: "person-" + a.ID.String(), Text: a.Label})
	}
	name := func(c *page.Choice) string { return c.Text }
	wording.SortNames(rooms, name)
	wording.SortNames(people, name)
	for i := range maxCompared {
		field := comparisonField{
			ID: fmt.Sprintf("with-%d", i+1), Label: fmt.Sprintf("Line %d", i+1),
			Rooms: slices.Clone(rooms), People: slices.Clone(people),
		}
		if i < len(c.items) {
			field.choose(&c.items[i])
		}
		view.Fields = append(view.Fields, field)
	}
	for _, m := range roomsensor.Metrics {
		view.Metrics = append(view.Metrics, page.Choice{
			Value: m.String(), Text: wording.MetricTexts[m].Name, Chosen: m == c.metric,
		})
	}
	return nil
}

// newestOfPeople returns the newest assignment in a window of each person.
func newestOfPeople(
	assignments []roomsensor.Assignment, w roomsensor.Window,
) map[roomsensor.PersonKey]*roomsensor.Assignment {
	newest := map[roomsensor.PersonKey]*roomsensor.Assignment{}
	for i := range assignments {
		a := &assignments[i]
		key, ok := a.Person()
		if a.Window().Intersect(w).Empty() {
			continue
		}
		if known := newest[key]; ok && (known == nil || a.StartedAt.After(known.StartedAt)) {
			newest[key] = a
		}
	}
	return newest
}

// choose marks the choice of an item. A room without a name, or a person who had no room in the window, becomes one.
func (f *comparisonField) choose(item *compared) {
	for _, list := range []*[]page.Choice{&f.Rooms, &f.People} {
		for i := range *list {
			if (*list)[i].Value == item.value {
				(*list)[i].Chosen = true
				return
			}
		}
	}
	f.Rooms = append([]page.Choice{{Value: item.value, Text: item.name, Chosen: true}}, f.Rooms...)
}

// addLines reads what is compared, and draws it.
func (p *Pages) addLines(ctx context.Context, v *page.Visit, view *comparisonView, c *comparison) error {
	for i := range c.items {
		line, err := p.readLine(ctx, v, &c.items[i], c, c.window)
		if err != nil {
			return err
		}
		view.Lines = append(view.Lines, line)
		if c.before.Empty() {
			continue
		}
		if line, err = p.readLine(ctx, v, &c.items[i], c, c.before); err != nil {
			return err
		}
		line.Name += ", the " + c.length.before + " before"
		for j := range line.points {
			line.points[j].At = line.points[j].At.Add(c.window.From.Sub(c.before.From))
		}
		view.Lines = append(view.Lines, line)
	}
	drawn := metricLine(v.Format(), c.metric, nil)
	drawn.ID, drawn.Window, drawn.Zone, drawn.Step = "compare", c.window, v.Zone(), roomsensor.BucketLength
	drawn.Nights = nightsIn(v, c.window)
	if c.length.hourly() {
		drawn.Step = time.Hour
	}
	for i := range view.Lines {
		view.Lines[i].Number = i + 1
		drawn.Compared = append(drawn.Compared, chart.Series{Name: view.Lines[i].Name, Points: view.Lines[i].points})
	}
	view.Metric = metricChart{Name: drawn.Title, Unit: drawn.Unit, Drawing: drawn.SVG()}
	return nil
}

// readLine reads the readings of a room or a person, the oldest first.
func (p *Pages) readLine(
	ctx context.Context, v *page.Visit, item *compared, c *comparison, w roomsensor.Window,
) (line comparedLine, err error) {
	line = comparedLine{Name: item.name, Link: item.link}
	read := p.readingBuckets
	if c.length.hourly() {
		read = p.hourBuckets
	}
	for _, part := range item.parts {
		inside := part.window.Intersect(w)
		if inside.Empty() {
			continue
		}
		buckets, err := read(ctx, v, part.device, inside)
		if err != nil {
			return line, err
		}
		slices.Reverse(buckets)
		line.points = append(line.points, metricLine(v.Format(), c.metric, buckets).Points...)
	}
	// A person can have two rooms at the same time.
	slices.SortStableFunc(line.points, func(a, b chart.Point) int { return a.At.Compare(b.At) })
	if mean, low, high, ok := chart.Extent(line.points); ok {
		text := func(x float64) string { // The points have the unit of the person.
			return wording.Digits(c.metric, x) + "\u00a0" + v.Format().Unit(c.metric)
		}
		line.mean, line.Mean, line.Low, line.High = mean, text(mean), text(low), text(high)
	}
	return line, nil
}

// headline answers which line is the highest.
func (view *comparisonView) headline(metric roomsensor.Metric) string {
	measured := slices.DeleteFunc(slices.Clone(view.Lines), func(l comparedLine) bool { return l.Mean == "" })
	if len(measured) == 0 {
		return "Compare rooms and people"
	}
	highest := slices.MaxFunc(measured, func(a, b comparedLine) int { return cmp.Compare(a.mean, b.mean) })
	text := wording.MetricTexts[metric].Name
	if len(measured) == 1 {
		return fmt.Sprintf("%s of %s: %s on average", text, highest.Name, highest.Mean)
	}
	return fmt.Sprintf("%s was highest: %s, %s on average", text, highest.Name, highest.Mean)
}
