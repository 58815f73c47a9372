package export

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

// Format is the format of a file.
type Format int

// The formats.
const (
	ReadingsCSV Format = iota
	Parquet
	AggregatesCSV
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

	// AggregatesCSV only.
	Interval aggregate.Interval
	Zone     *time.Location
	Fill     bool // also lines without readings

	Sheet *Sheet // Excel and ExcelCSV only
}

// The parameters of exports in a URL. KeyParameter is the key of the API (decision 26).
const (
	KeyParameter     = "key"
	MetricsParameter = "metrics"
	shapeParameter   = "shape"
	columnsParameter = "columns"
	includeParameter = "include"
)

// ParseReadings reads the query of GET /readings.csv or GET /readings.parquet, each parameter by its own rule. The
// caller sets who asks. The links of the dashboard have the same parameters.
func ParseReadings(rawQuery string, format Format, now time.Time) (*Request, error) {
	known := []string{
		httpedge.FromParameter, httpedge.ToParameter, httpedge.LastParameter, httpedge.AssignmentParameter,
		httpedge.DevicesParameter, httpedge.MetadataPrefix,
	}
	if format == ReadingsCSV {
		known = append(known, shapeParameter, MetricsParameter, columnsParameter, includeParameter, KeyParameter)
	} else {
		known = append(known, MetricsParameter, KeyParameter)
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
	return r, r.readInclude(q.Get(includeParameter))
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

// readInclude reads the parameter that adds a column to the long shape (A6.4).
func (r *Request) readInclude(text *string) error {
	switch {
	case text == nil:
	case *text != "ingested_at":
		return roomsensor.Invalid(includeParameter, "include must be ingested_at.")
	case r.Wide:
		return roomsensor.Invalid(includeParameter, "Only the long shape takes include. Leave out shape or include.")
	default:
		r.IngestedAt = true
	}
	return nil
}
