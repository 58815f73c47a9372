package dashboard

import (
	"context"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chart"
	"roomsensor/internal/roomsensor"
)

// DevicePage reads what the page of a device shows.
type DevicePage interface {
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)
	EachReading(ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery,
		do func(*roomsensor.Reading)) error
	// DeviceAggregates may leave out aggregates at the end, but not the first one.
	DeviceAggregates(
		ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AggregateQuery,
	) ([]roomsensor.Aggregate, error)
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
	Status        statusText
	Tags          []tag
	Installations []roomsensor.Installation
	Installed     *roomsensor.Installation // nil if no unit is installed

	Window  deviceWindow
	Charts  []metricChart
	Table   deviceTable
	HasLate bool

	Form   deviceForm
	Errors formErrors
}

// tag is a tag of a device.
type tag struct{ Key, Value string }

// Name returns the display name of the device, or its hardware id.
func (d *deviceView) Name() string { return nameOf(d.Device.DisplayName, d.Device.HardwareID) }

// nameOf returns the display name of a device, or its hardware id.
func nameOf(displayName *string, hardwareID string) string {
	if displayName == nil {
		return hardwareID
	}
	return *displayName
}

// metricChart is the chart of one metric.
type metricChart struct {
	Key, Name, Unit string
	Drawing         template.HTML
	Summary         string
}

func (s *server) showDevice(ctx context.Context, v *visit) error {
	view, err := s.deviceView(ctx, v)
	if err != nil {
		return err
	}
	if len(view.Errors) > 0 {
		return v.invalid("device", view)
	}
	return v.render("device", view)
}

// deviceView reads the data of the page. If the window is not valid, it has an error and no charts.
func (s *server) deviceView(ctx context.Context, v *visit) (*deviceView, error) {
	id, err := v.id("device_id")
	if err != nil {
		return nil, err
	}
	view := &deviceView{Errors: formErrors{}}
	if view.Device, err = s.backend.Device(ctx, v.team.ID, id); err != nil {
		return nil, err
	}
	view.Status = statusTextOf(roomsensor.StatusAt(v.now, view.Device.LastSeenAt), view.Device.LastSeenAt)
	for _, key := range slices.Sorted(maps.Keys(view.Device.Metadata)) {
		view.Tags = append(view.Tags, tag{key, view.Device.Metadata[key]})
	}
	if view.Installations, err = s.backend.DeviceInstallations(ctx, v.team.ID, id, maxInstallations); err != nil {
		return nil, err
	}
	if len(view.Installations) > 0 && view.Installations[0].To == nil {
		view.Installed = &view.Installations[0]
	}
	view.Form = newDeviceForm(view)
	view.Window = v.deviceWindow(view.Errors)
	if len(view.Errors) > 0 {
		return view, nil
	}
	return view, s.addCharts(ctx, v, view)
}

// addCharts adds the charts, and the table of the same numbers.
func (s *server) addCharts(ctx context.Context, v *visit, view *deviceView) error {
	w := &view.Window
	buckets, err := s.deviceBuckets(ctx, v, view.Device.ID, w)
	if err != nil {
		return err
	}
	bands, err := s.assignmentBands(ctx, v, view.Device.ID, w.Window)
	if err != nil {
		return err
	}
	for _, m := range roomsensor.Metrics {
		line := metricLine(m, buckets)
		line.Window, line.Zone, line.Step, line.Bands = w.Window, v.zone(), w.step(), bands
		line.Thresholds = chartThresholds(v.team.Thresholds[m])
		view.Charts = append(view.Charts, metricChart{
			Key: m.String(), Name: line.Title, Unit: line.Unit, Drawing: line.SVG(), Summary: line.Summary(),
		})
	}
	view.HasLate = slices.ContainsFunc(buckets, func(b deviceBucket) bool { return b.delay > 0 })
	page, _ := strconv.Atoi(v.echo.QueryParam("page"))
	view.Table = newDeviceTable(buckets, page)
	return nil
}

// chartRanges are values that the scale of each metric includes, so that noise does not look like a change.
var chartRanges = [roomsensor.MetricCount]struct{ low, high float64 }{
	roomsensor.CO2: {400, 1000}, roomsensor.Temp: {16, 26}, roomsensor.Humidity: {30, 60},
	roomsensor.Lux: {0, 500}, roomsensor.Sound: {30, 50},
}

// chartThresholds returns the ends of a threshold of the team.
func chartThresholds(t roomsensor.Threshold) (lines []chart.Threshold) {
	if t.Low != nil {
		lines = append(lines, chart.Threshold{Value: float64(*t.Low)})
	}
	if t.High != nil {
		lines = append(lines, chart.Threshold{Value: float64(*t.High), Above: true})
	}
	return lines
}

// metricLine returns the chart of a metric, still without a window.
func metricLine(m roomsensor.Metric, buckets []deviceBucket) *chart.Line {
	text := metricTexts[m]
	line := &chart.Line{
		ID: "chart-" + m.String(), Title: text.name, Unit: text.unit, Digits: text.decimals,
		Low: chartRanges[m].low, High: chartRanges[m].high, Points: make([]chart.Point, 0, len(buckets)),
	}
	for i := range buckets {
		b := &buckets[i]
		if value := &b.metrics[m]; value.Count > 0 {
			line.Points = append(line.Points, chart.Point{
				At: b.from, Value: value.Mean, Low: value.Min, High: value.Max, Count: value.Count, Late: b.delay > 0,
			})
		}
	}
	return line
}

// assignmentBands returns the assignments of a device that overlap a window.
func (s *server) assignmentBands(
	ctx context.Context, v *visit, deviceID uuid.UUID, w roomsensor.Window,
) (bands []chart.Band, err error) {
	newest, err := s.backend.Assignments(ctx, v.team.ID, deviceID, roomsensor.AssignmentQuery{
		After: &roomsensor.AssignmentPosition{StartedAt: w.To, ID: uuid.Max}, Limit: maxBands,
	})
	for i := range newest {
		if a := &newest[i]; !a.Window().Intersect(w).Empty() {
			bands = append(bands, chart.Band{Window: a.Window(), Label: a.Label})
		}
	}
	slices.Reverse(bands)
	return bands, err
}
