// Package devices is the page of a device.
package devices

import (
	"context"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// Backend reads and changes devices.
type Backend interface {
	DevicePage
	DeviceChanges
	Comparison
	page.Notes
}

// Pages are the pages of devices.
type Pages struct{ backend Backend }

// New returns the pages.
func New(backend Backend) *Pages { return &Pages{backend} }

// DevicePage reads what the page of a device shows.
type DevicePage interface {
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)
	EachReading(ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery,
		do func(*roomsensor.Reading)) error
	// DeviceAggregates may leave out aggregates at the end, but not the first one.
	DeviceAggregates(
		ctx context.Context, teamID, deviceID uuid.UUID, q aggregate.Query,
	) ([]aggregate.Aggregate, error)
	LateReadings(
		ctx context.Context, teamID, deviceID uuid.UUID, w roomsensor.Window, width time.Duration,
	) ([]roomsensor.LateReadings, error)
	Assignments(
		ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AssignmentQuery,
	) ([]roomsensor.Assignment, error)
	DeviceInstallations(ctx context.Context, teamID, deviceID uuid.UUID, limit int) ([]roomsensor.Installation, error)
}

const (
	// maxBands is how many assignments a chart shows at most, the newest ones. A chart has room for fewer.
	maxBands = 500
	// maxInstallations is how many installations the page lists at most, the newest ones.
	maxInstallations = 100
	// rowsPerPage is how many rows the table of a page has at most.
	rowsPerPage = 100
)

// deviceView is the data of the page of a device.
type deviceView struct {
	Device        roomsensor.Device
	Status        wording.StatusText
	TagKeys       []string // in order
	Installations []roomsensor.Installation
	Installed     *roomsensor.Installation // nil if no unit is installed
	Waiting       bool                     // for the first upload since the unit was installed

	Window  deviceWindow
	During  []roomsensor.Assignment // in a chosen window, the newest first
	Back    []backLink
	Charts  []metricChart
	Table   deviceTable
	HasLate bool
	Notes   page.NotesView

	Form   deviceForm
	Errors page.FormErrors
}

// Name returns the display name of the device, or its hardware id.
func (d *deviceView) Name() string { return wording.TextOr(d.Device.DisplayName, d.Device.HardwareID) }

// metricChart is the chart of one metric.
type metricChart struct {
	Key, Name, Unit string
	Drawing         template.HTML
	Summary         string
}

// ShowDevice shows a device with its charts.
func (p *Pages) ShowDevice(ctx context.Context, v *page.Visit) error {
	view, err := p.deviceView(ctx, v)
	if err != nil {
		return err
	}
	if len(view.Errors) > 0 {
		return v.Invalid("device", view)
	}
	return v.Render("device", view)
}

// deviceView reads the data of the page. If the window is not valid, it has an error and no charts.
func (p *Pages) deviceView(ctx context.Context, v *page.Visit) (*deviceView, error) {
	id, err := v.ID("device_id")
	if err != nil {
		return nil, err
	}
	view := &deviceView{Errors: page.FormErrors{}}
	if view.Device, err = p.backend.Device(ctx, v.Team.ID, id); err != nil {
		return nil, err
	}
	view.Status = wording.StatusTextOf(roomsensor.StatusAt(v.Now, view.Device.LastSeenAt), view.Device.LastSeenAt)
	view.TagKeys = slices.Sorted(maps.Keys(view.Device.Metadata))
	if view.Installations, err = p.backend.DeviceInstallations(ctx, v.Team.ID, id, maxInstallations); err != nil {
		return nil, err
	}
	if len(view.Installations) > 0 && view.Installations[0].To == nil {
		view.Installed = &view.Installations[0]
		from, seen := view.Installed.From, view.Device.LastSeenAt
		view.Waiting = from != nil && (seen == nil || seen.Before(*from))
	}
	view.Form = deviceForm{Name: wording.TextOr(view.Device.DisplayName, "")}
	view.Window = readWindow(v, view.Errors)
	if len(view.Errors) > 0 {
		return view, nil
	}
	return view, p.addCharts(ctx, v, view)
}

// addCharts adds the charts, and the table of the same numbers.
func (p *Pages) addCharts(ctx context.Context, v *page.Visit, view *deviceView) error {
	w := &view.Window
	buckets, err := p.deviceBuckets(ctx, v, view.Device.ID, w)
	if err != nil {
		return err
	}
	during, err := p.assignmentsIn(ctx, v, view.Device.ID, w.Window)
	if err != nil {
		return err
	}
	if w.Range == "" {
		view.During = during
	}
	view.Back = backLinks(v)
	if view.Notes, err = p.notes(ctx, v, view.Device.ID, w.Window, during); err != nil {
		return err
	}
	bands, marks, nights := bandsOf(during), marksOf(view.Notes.Notes), nightsIn(v, w.Window)
	limits := v.Team.Limits.For(view.Device.ID, view.Device.Metadata)
	for _, m := range roomsensor.Metrics {
		line := metricLine(v.Format(), m, buckets)
		line.Window, line.Zone, line.Step, line.Bands = w.Window, v.Zone(), w.step(), bands
		line.Marks, line.Nights = marks, nights
		line.Thresholds = chartThresholds(v.Format(), m, limits[m])
		view.Charts = append(view.Charts, metricChart{
			Key: m.String(), Name: line.Title, Unit: line.Unit, Drawing: line.SVG(), Summary: line.Summary(),
		})
	}
	view.HasLate = slices.ContainsFunc(buckets, func(b deviceBucket) bool { return b.delay > 0 })
	number, _ := strconv.Atoi(v.Echo.QueryParam("page"))
	view.Table = newDeviceTable(v.Format(), buckets, number)
	return nil
}

// chartThresholds returns the limits of a metric.
func chartThresholds(f wording.Format, m roomsensor.Metric, l airquality.Limit) (lines []chart.Threshold) {
	add := func(b airquality.Bound, above bool) {
		if b.Warn != nil {
			lines = append(lines, chart.Threshold{Value: f.Convert(m, *b.Warn), Above: above})
		}
		if b.Bad != nil && *b.Bad != *b.Warn {
			lines = append(lines, chart.Threshold{Value: f.Convert(m, *b.Bad), Above: above})
		}
	}
	add(l.Low, false)
	add(l.High, true)
	return lines
}

// metricLine returns the chart of a metric, still without a window.
func metricLine(f wording.Format, m roomsensor.Metric, buckets []deviceBucket) *chart.Line {
	text := wording.MetricTexts[m]
	line := &chart.Line{
		ID: "chart-" + m.String(), Title: text.Name, Unit: f.Unit(m), Digits: text.Decimals, Format: f.Time,
		Low: float64(f.Convert(m, text.Low)), High: float64(f.Convert(m, text.High)),
		Points: make([]chart.Point, 0, len(buckets)),
	}
	for i := range buckets {
		b := &buckets[i]
		if value := &b.metrics[m]; value.Count > 0 {
			line.Points = append(line.Points, chart.Point{
				At: b.from, Value: f.Convert(m, value.Mean), Low: f.Convert(m, value.Min), High: f.Convert(m, value.Max),
				Count: value.Count, Late: b.delay > 0,
			})
		}
	}
	return line
}

// backLink leads to the page from which the person came.
type backLink struct{ Path, Text string }

// backLinks returns the links to the night and to the person that the query names.
func backLinks(v *page.Visit) (links []backLink) {
	if person, err := uuid.Parse(v.Echo.QueryParam("person")); err == nil {
		links = append(links, backLink{v.Path("people", person.String()), "Nights of this person"})
	}
	if night, err := time.Parse(time.DateOnly, v.Echo.QueryParam("night")); err == nil {
		links = append(links, backLink{
			v.Path("nights") + "?night=" + night.Format(time.DateOnly), "Night of " + v.Format().Time(night, "Mon 2 Jan 2006"),
		})
	}
	return links
}

// maxShadedNights is how many nights a chart shows. More of them would be stripes.
const maxShadedNights = 31

// nightsIn returns the nights of the team that overlap a window, or none for a long one.
func nightsIn(v *page.Visit, w roomsensor.Window) (nights []roomsensor.Window) {
	if w.To.Sub(w.From) > maxShadedNights*24*time.Hour {
		return nil
	}
	for date := w.From.In(v.Zone()).AddDate(0, 0, -1); ; date = date.AddDate(0, 0, 1) {
		night := v.Team.Night.Night(date, v.Zone()).Window
		if !night.From.Before(w.To) {
			return nights
		}
		nights = append(nights, night)
	}
}

// bandsOf returns the bands of assignments, of which the newest is first.
func bandsOf(assignments []roomsensor.Assignment) (bands []chart.Band) {
	for i := range assignments {
		bands = append(bands, chart.Band{Window: assignments[i].Window(), Label: assignments[i].Label})
	}
	slices.Reverse(bands)
	return bands
}

// assignmentsIn returns the assignments of a device that overlap a window, the newest first.
func (p *Pages) assignmentsIn(
	ctx context.Context, v *page.Visit, deviceID uuid.UUID, w roomsensor.Window,
) (during []roomsensor.Assignment, err error) {
	newest, err := p.backend.Assignments(ctx, v.Team.ID, deviceID, roomsensor.AssignmentQuery{
		After: &roomsensor.AssignmentPosition{StartedAt: w.To, ID: uuid.Max}, Limit: maxBands,
	})
	return slices.DeleteFunc(newest, func(a roomsensor.Assignment) bool { return a.Window().Intersect(w).Empty() }), err
}
