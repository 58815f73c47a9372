// Package exports is the page on which people choose, count and download an export.
package exports

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/wording"
)

// maxExports is how many exports a process of the dashboard runs at the same time: as many as store.Dashboard has
// connections for them. A team gets two of four if it is alone.
const maxExports = 4

// Backend has the data of exports.
type Backend = export.Backend

// Pages are the pages of exports.
type Pages struct {
	backend   Backend
	exporter  *export.Exporter
	publicURL string // base URL of the API, for samples
}

// New returns the pages.
func New(backend Backend, publicURL string, now func() time.Time) *Pages {
	return &Pages{backend, export.New(backend, maxExports, page.RequestTimeout, now), publicURL}
}

// exportForm has the fields of the page, as the person entered them. Its URL can be shared.
type exportForm struct {
	From, To         string // in the team's zone
	Preset           string // the name of a window, in place of From and To
	Devices          []string
	Tags             string
	Metrics          []string // all if there are none
	Format, Shape    string
	ByID, IngestedAt bool
	Assigned         bool               // CSV in the long shape: the columns of the assignment
	TimeZone         string             // of the column local_time of CSV and Parquet; empty for none
	Excel            string             // CSV: true or comma for a spreadsheet, as in the API; empty for programs
	Means            aggregate.Interval // of spreadsheets; empty for single readings
	Month            string             // of the window, such as 2026-11, if Preset is calendar
}

// formats are the formats of a file by the value of the field.
var formats = map[string]struct {
	format export.Format
	file   string // the last part of the address of the download
	name   string // of the download
}{
	"csv":     {export.ReadingsCSV, "readings.csv", "CSV"},
	"parquet": {export.Parquet, "readings.parquet", "Parquet"},
	"xlsx":    {export.Excel, "spreadsheet.xlsx", "for Excel"},
	"excel":   {export.ExcelCSV, "spreadsheet.csv", "CSV for Excel"},
}

// Spreadsheet reports whether the file is for a spreadsheet.
func (f *exportForm) Spreadsheet() bool { return f.Format == "xlsx" || f.Format == "excel" }

// timeZoneField is the parameter of the API, and the field, of the column local_time.
const timeZoneField = httpedge.TimeZoneParameter

// readExportForm reads the fields. Without a time zone, that of the team is chosen.
func readExportForm(v *page.Visit) exportForm {
	query := v.Echo.QueryParams()
	f := exportForm{
		Preset: query.Get("preset"), From: query.Get("from"), To: query.Get("to"), Devices: query["device"],
		Tags: query.Get("tags"), Metrics: query["metric"], Format: query.Get("format"), Shape: query.Get("shape"),
		ByID: query.Get("columns") == "id", IngestedAt: slices.Contains(query["include"], "ingested_at"),
		Assigned: slices.Contains(query["include"], "assignment"), TimeZone: strings.TrimSpace(query.Get(timeZoneField)),
		Means: aggregate.Interval(query.Get("means")), Month: query.Get("month"),
	}
	if _, known := formats[f.Format]; !known {
		f.Format = "csv"
	}
	if f.Means != aggregate.Hourly && f.Means != aggregate.Daily {
		f.Means = ""
	}
	if f.Shape != "wide" {
		f.Shape = "long"
	}
	if excel := query.Get(export.ExcelParameter); excel == "true" || excel == "comma" {
		f.Excel = excel
	}
	if !query.Has(timeZoneField) {
		f.TimeZone = v.Zone().String()
	}
	switch {
	case f.Preset != "": // A button of the form, which sends the fields too.
		f.From, f.To = "", ""
	case f.From == "" && f.To == "":
		f.Preset = "night"
	}
	return f
}

// wide reports whether the file has a column for each device. Parquet files never have.
func (f *exportForm) wide() bool { return f.Format == "csv" && f.Shape == "wide" }

// parameters returns the parameters of the API that mean the same as the form, and the errors of the fields that cannot
// be expressed. The API checks the others.
func (f *exportForm) parameters(v *page.Visit) (url.Values, page.FormErrors) {
	q, problems := url.Values{}, page.FormErrors{}
	window := f.window(v, problems)
	q.Set("from", roomsensor.FormatTime(window.From))
	q.Set("to", roomsensor.FormatTime(window.To))
	if len(f.Devices) > 0 {
		q.Set("devices", strings.Join(f.Devices, ","))
	}
	for tag := range strings.SplitSeq(f.Tags, ",") {
		key, value, ok := wording.ParseTag(tag)
		switch {
		case key == "" && !ok:
		case !ok || roomsensor.CheckMetadataKey(key) != nil || q.Has("metadata."+key):
			problems.Add("tags", "Enter tags as key=value, each key once, separated by commas, such as building=gym, floor=2.")
		default:
			q.Set("metadata."+key, value)
		}
	}
	if len(f.Metrics) > 0 && len(f.Metrics) < roomsensor.MetricCount {
		q.Set("metrics", strings.Join(f.Metrics, ","))
	}
	f.setColumns(q, problems)
	return q, problems
}

// setColumns adds the parameters of the columns and of their form.
func (f *exportForm) setColumns(q url.Values, problems page.FormErrors) {
	if f.Spreadsheet() {
		if f.Means != "" {
			q.Set(meansParameter, string(f.Means))
		}
		return
	}
	if f.TimeZone != "" {
		if zone := problems.ReadZone(f.TimeZone); zone != nil {
			f.TimeZone = zone.String()
			q.Set(timeZoneField, f.TimeZone)
		}
	}
	if f.Format == "parquet" {
		return
	}
	if f.Excel != "" {
		q.Set(export.ExcelParameter, f.Excel)
	}
	switch include := f.include(); {
	case f.wide():
		q.Set("shape", "wide")
		if f.ByID {
			q.Set("columns", "id")
		}
	case include != "":
		q.Set("include", include)
	}
}

// include returns the columns that the long shape of a CSV has in addition.
func (f *exportForm) include() string {
	var columns []string
	if f.IngestedAt {
		columns = append(columns, "ingested_at")
	}
	if f.Assigned {
		columns = append(columns, "assignment")
	}
	return strings.Join(columns, ",")
}

// window returns the window of the form, and writes its ends into the fields.
func (f *exportForm) window(v *page.Visit, problems page.FormErrors) (w roomsensor.Window) {
	zone, now := v.Zone(), roomsensor.BucketOf(v.Now)
	switch f.Preset {
	case "night":
		last, _ := v.Team.Night.LastNight(v.Now, v.Zone())
		w = last.Window
	case "week":
		w = roomsensor.Window{From: now.AddDate(0, 0, -7), To: now}
	case "month":
		w = roomsensor.Window{From: now.AddDate(0, 0, -30), To: now}
	case "this-month", "last-month":
		local := v.Now.In(zone)
		month := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, zone)
		if f.Preset == "last-month" {
			month = month.AddDate(0, -1, 0)
		}
		w = calendarMonth(month)
	case "calendar":
		month, err := time.ParseInLocation("2006-01", f.Month, zone)
		if err != nil || month.Year() < 1 {
			problems.Add("month", "Choose a month, such as 2026-11.")
		}
		w = calendarMonth(month)
	default:
		var err error
		w.From, err = roomsensor.ParseLocal("from", f.From, zone)
		problems.AddRule(err)
		w.To, err = roomsensor.ParseLocal("to", f.To, zone)
		problems.AddRule(err)
		return w
	}
	f.From, f.To = roomsensor.FormatLocal(w.From, zone), roomsensor.FormatLocal(w.To, zone)
	return w
}

func calendarMonth(first time.Time) roomsensor.Window {
	return roomsensor.Window{From: first, To: first.AddDate(0, 1, 0)}
}

// until returns the address of the page with a form whose window ends at a time.
func (f *exportForm) until(v *page.Visit, to time.Time) string {
	query := v.Echo.Request().URL.Query()
	query.Del("preset")
	query.Set("from", f.From)
	query.Set("to", roomsensor.FormatLocal(to, v.Zone()))
	return v.Path("export") + "?" + query.Encode()
}

// Show shows the form, and the size of the export once the person has sent it.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	devices, err := p.backend.DeviceNames(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	form := readExportForm(v)
	query, problems := form.parameters(v)
	view := newExportView(v, form, devices)
	view.Errors = problems
	if !v.Echo.QueryParams().Has("count") {
		view.Errors = nil
		return v.Render("export", view)
	}
	if len(problems) > 0 {
		return v.Invalid("export", view)
	}
	size, err := p.countExport(ctx, v, &form, query.Encode())
	if refused, ok := errors.AsType[*roomsensor.Error](err); ok && refused.Code != roomsensor.CodeOverloaded {
		problems.Add(fieldOf(refused.Param), refused.Message)
		return v.Invalid("export", view)
	}
	if err != nil {
		return err
	}
	view.measured(v, p.publicURL, query, &size, devices)
	return v.Render("export", view)
}

// fieldOf returns the field of the form for a parameter of the API.
func fieldOf(parameter string) string {
	switch {
	case strings.HasPrefix(parameter, "metadata."):
		return "tags"
	case slices.Contains([]string{"from", "to", "devices", "metrics", timeZoneField}, parameter):
		return parameter
	}
	return "export"
}

// countExport returns the size of an export. Its error is a *roomsensor.Error with the parameter at fault.
func (p *Pages) countExport(ctx context.Context, v *page.Visit, form *exportForm, query string) (export.Size, error) {
	r, err := request(v, query, formats[form.Format].format)
	if err != nil {
		return export.Size{}, err
	}
	return p.exporter.Count(ctx, r)
}

// Download sends an export. Its parameters are those of the API.
func (p *Pages) Download(format export.Format) func(context.Context, *page.Visit) error {
	return func(ctx context.Context, v *page.Visit) error {
		r, err := request(v, v.Echo.Request().URL.RawQuery, format)
		if err != nil {
			return err
		}
		_, err = p.exporter.Send(ctx, v.Echo, r)
		return err
	}
}

// meansParameter chooses the rows of a spreadsheet: 1h or 1d; single readings without it.
const meansParameter = "means"

// request returns the export that the person asks for with parameters of the API, or with those and meansParameter for
// a spreadsheet.
func request(v *page.Visit, query string, format export.Format) (*export.Request, error) {
	var sheet *export.Sheet
	if format == export.Excel || format == export.ExcelCSV {
		values, err := url.ParseQuery(query)
		if err != nil {
			return nil, page.ErrMalformed
		}
		sheet = newSheet(v, aggregate.Interval(values.Get(meansParameter)))
		values.Del(meansParameter)
		query = values.Encode()
	}
	r, err := export.ParseReadings(query, format, v.Now)
	if err != nil {
		return nil, err
	}
	r.Sheet = sheet
	r.TeamID, r.Requester = v.Team.ID, v.User.ID.String()
	r.Recheck = func(context.Context) error {
		err := v.Recheck() //nolint:contextcheck // That of the request has the session as it was.
		if errors.Is(err, page.ErrSignedOut) || errors.Is(err, roomsensor.ErrNotFound) {
			return err
		}
		return nil // Without the database, the right stays as it was.
	}
	return r, nil
}

// newSheet returns what a spreadsheet of the person has: local times and the separators of the browser's language.
func newSheet(v *page.Visit, means aggregate.Interval) *export.Sheet {
	s := &export.Sheet{Zone: v.Zone(), Means: means, Comma: v.DecimalComma()}
	for _, m := range roomsensor.Metrics {
		s.Headers[m] = wording.MetricTexts[m].Name + " (" + wording.MetricTexts[m].Unit + ")"
	}
	return s
}
