package export

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
)

// Format is the format of a file.
type Format int

// The formats.
const (
	ReadingsCSV Format = iota
	Parquet
	AggregatesCSV
	NightsCSV
	Excel
	ExcelCSV
)

// Request is an export that somebody asks for.
type Request struct {
	TeamID    uuid.UUID
	Requester string // id of the key or the person, for the limit of concurrent exports
	Format    Format
	// Recheck returns an error if the requester has lost the right to the export; nil means that nobody checks it.
	Recheck func(context.Context) error
	Times   httpedge.TimeRange
	Devices httpedge.DeviceSelection
	Metrics []roomsensor.Metric

	// ReadingsCSV only.
	Wide       bool // a column for each metric of each device, instead of a line for each reading
	ByID       bool // the columns of the wide shape have ids instead of names (A6.3)
	IngestedAt bool // the long shape has the column ingested_at (A6.4)

	Assigned bool // the long shape and Parquet have the columns of the assignment (A18.3)

	Local *time.Location // of the column local_time; nil leaves it out (A19.1)
	Excel bool           // a byte order mark, and local_time without an offset (A19.2)
	Comma bool           // decimal commas, and semicolons between cells

	// AggregatesCSV only.
	Interval aggregate.Interval
	Zone     *time.Location
	Fill     bool // also lines without readings

	Nights *airquality.NightSelection // NightsCSV only, which takes no Times, Devices and Metrics
	Sheet  *Sheet                     // Excel and ExcelCSV only
}

// The parameters of exports in a URL. KeyParameter is the key of the API (decision 26).
const (
	KeyParameter     = "key"
	MetricsParameter = "metrics"
	shapeParameter   = "shape"
	columnsParameter = "columns"
	includeParameter = "include"
	ExcelParameter   = "excel"
)

// columns returns the columns of a CSV without their assignments.
func (r *Request) columns() csvenc.Columns {
	return csvenc.Columns{
		Metrics: r.Metrics, ByID: r.ByID, IngestedAt: r.IngestedAt, Zone: r.Local, Excel: r.Excel, Comma: r.Comma,
	}
}

// ReadLocal reads the parameters time_zone and excel, which add local times (A19). Without a time zone, those of a
// spreadsheet are UTC.
func (r *Request) ReadLocal(q httpedge.Query) error {
	if text := q.Get(httpedge.TimeZoneParameter); text != nil {
		zone, err := httpedge.ReadTimeZone(text)
		if err != nil {
			return err
		}
		r.Local = zone
	}
	switch text := q.Get(ExcelParameter); {
	case text == nil:
		return nil
	case *text == "true", *text == "comma":
		r.Excel, r.Comma = true, *text == "comma"
	default:
		return roomsensor.Invalid(ExcelParameter, "excel must be true, or comma for decimal commas and semicolons.")
	}
	if r.Local == nil {
		r.Local = time.UTC
	}
	return nil
}

// ParseReadings reads the query of GET /readings.csv or GET /readings.parquet, each parameter by its own rule. The
// caller sets who asks. The links of the dashboard have the same parameters.
func ParseReadings(rawQuery string, format Format, now time.Time) (*Request, error) {
	known := []string{
		httpedge.FromParameter, httpedge.ToParameter, httpedge.LastParameter, httpedge.AssignmentParameter,
		httpedge.ExternalRefParameter, httpedge.DevicesParameter, httpedge.MetadataPrefix, MetricsParameter,
		includeParameter, httpedge.TimeZoneParameter, KeyParameter,
	}
	if format == ReadingsCSV {
		known = append(known, shapeParameter, columnsParameter, ExcelParameter)
	}
	q, err := httpedge.ParseQuery(rawQuery, known...)
	if err != nil {
		return nil, err
	}
	r := &Request{Format: format}
	if r.Times, err = httpedge.ReadTimeRange(q, roomsensor.ReadingWindows, now); err != nil {
		return nil, err
	}
	if r.Devices, err = httpedge.ReadDevices(q); err != nil {
		return nil, err
	}
	if err := r.readShape(q.Get(shapeParameter)); err != nil {
		return nil, err
	}
	if r.Metrics, err = roomsensor.ParseMetrics(q.Get(MetricsParameter)); err != nil {
		return nil, err
	}
	if err := r.readColumns(q.Get(columnsParameter)); err != nil {
		return nil, err
	}
	if err := r.readInclude(q.Get(includeParameter)); err != nil {
		return nil, err
	}
	return r, r.ReadLocal(q)
}

func (r *Request) readShape(text *string) error {
	switch {
	case text == nil, *text == "long":
	case *text == "wide":
		r.Wide = true
	case strings.EqualFold(*text, "parquet"):
		return roomsensor.Invalid(shapeParameter, "shape must be long or wide. For Parquet, request /readings.parquet.")
	default:
		return roomsensor.Invalid(shapeParameter, "shape must be long or wide.")
	}
	return nil
}

// readColumns reads the parameter that chooses the column names of the wide shape (A6.3).
func (r *Request) readColumns(text *string) error {
	switch {
	case text == nil:
	case *text != "name" && *text != "id":
		return roomsensor.Invalid(columnsParameter, "columns must be name or id.")
	case !r.Wide:
		return roomsensor.Invalid(columnsParameter,
			"Only the wide shape takes columns. Send shape=wide too, or leave columns out.")
	default:
		r.ByID = *text == "id"
	}
	return nil
}

// readInclude reads the parameter that adds columns to the long shape and to Parquet, which always has ingested_at
// (A6.4, A18.3).
func (r *Request) readInclude(text *string) error {
	if text == nil {
		return nil
	}
	for name := range strings.SplitSeq(*text, ",") {
		included := map[string]*bool{"ingested_at": &r.IngestedAt, "assignment": &r.Assigned}[name]
		if included == nil || *included {
			return roomsensor.Invalid(includeParameter, "include must be ingested_at, assignment, or both separated by a comma.")
		}
		*included = true
	}
	if r.Wide {
		return roomsensor.Invalid(includeParameter, "Only the long shape takes include. Leave out shape or include.")
	}
	return nil
}
