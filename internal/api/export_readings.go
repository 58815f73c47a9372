package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
)

const (
	shapeParameter   = "shape"
	columnsParameter = "columns"
	includeParameter = "include"

	// maxWideDevices is the limit of devices in the wide shape (decision 29).
	maxWideDevices = 1000
)

// csvRequest has the parameters of GET /readings.csv.
type csvRequest struct {
	exportRequest
	wide    bool
	columns csvenc.Columns
}

// exportCSV handles GET /readings.csv: it streams readings of the team (spec 4, readings.csv).
func (e *exporter) exportCSV(ctx context.Context, c *call) error {
	asked, err := e.readCSVRequest(c)
	if err != nil {
		return err
	}
	return e.sendExport(ctx, c, func(ctx context.Context) (*download, error) { return e.prepareCSV(ctx, c, asked) })
}

func (e *exporter) prepareCSV(ctx context.Context, c *call, asked *csvRequest) (*download, error) {
	plan, err := e.planExport(ctx, c, &asked.exportRequest)
	if err != nil {
		return nil, err
	}
	if asked.wide {
		if err := checkWideCount(len(plan.devices)); err != nil {
			return nil, err
		}
	}
	export, err := e.openReadings(ctx, c, plan, roomsensor.ExportQuery{
		Lines: asked.wide, IngestedAt: asked.columns.IngestedAt,
	})
	if err != nil {
		return nil, err
	}
	d := &download{
		fileName: plan.fileName("readings", "csv", e.now()), contentType: "text/csv; charset=utf-8", coded: true,
		rows: export.Rows(), lines: export.Rows(), close: export.Close,
	}
	if asked.wide {
		d.lines = export.Lines()
	}
	d.body = func(ctx context.Context, w *exportWriter) error {
		var shape rowEncoder[roomsensor.ExportRow]
		if asked.wide {
			shape = csvenc.NewWide(plan.team, plan.devices, asked.columns)
		} else {
			shape = csvenc.NewLong(plan.team, asked.columns)
		}
		return sendCSV(ctx, w, shape, export)
	}
	return d, nil
}

// checkWideCount returns csv_too_large if the wide shape would have too many devices.
func checkWideCount(n int) error {
	if n > maxWideDevices {
		return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"The wide shape takes at most %d devices, and %d are selected. Name fewer in devices, or ask for shape=long.",
			maxWideDevices, n))
	}
	return nil
}

// openReadings opens the export of the readings that a plan selects. q has what the plan does not.
func (e *exporter) openReadings(
	ctx context.Context, c *call, plan *exportPlan, q roomsensor.ExportQuery,
) (Export, error) {
	q.CountOnly = c.Request().Method == http.MethodHead
	export, err := e.countReadings(ctx, c, plan, q)
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, plan.tooManyRows(tooMany)
	}
	return export, err
}

// countReadings is openReadings with the error of the backend, which counts the rows.
func (e *exporter) countReadings(
	ctx context.Context, c *call, plan *exportPlan, q roomsensor.ExportQuery,
) (Export, error) {
	if err := checkDeviceCount(len(plan.devices)); err != nil {
		return nil, err
	}
	if plan.empty() {
		return noRows{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	q.Window, q.Devices = plan.window, plan.devices
	return e.backend.OpenExport(ctx, c.key.TeamID, q)
}

// noRows is the export of a plan that selects nothing. Its CSV has only the header row.
type noRows struct{}

func (noRows) Rows() int  { return 0 }
func (noRows) Lines() int { return 0 }
func (noRows) Close()     {}

func (noRows) Each(context.Context, func(*roomsensor.ExportRow) error) error { return nil }

// tooManyRows returns csv_too_large with the number of rows and the window that would fit (decision 30).
func (p *exportPlan) tooManyRows(e *roomsensor.TooManyRowsError) error {
	fix := "Name fewer devices."
	if e.FitsUntil != nil {
		until := *e.FitsUntil
		if widest := p.window.From.Add(roomsensor.MaxWindow); until.After(widest) {
			until = widest
		}
		fix = fmt.Sprintf("Ask for from=%s&to=%s or name fewer devices.",
			roomsensor.FormatTime(p.window.From), roomsensor.FormatTime(until))
	}
	return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
		"The export would have %s rows; at most %d are allowed. %s", e.Count(), roomsensor.MaxExportRows, fix))
}

// readCSVRequest reads the parameters, each by its own rule.
func (e *exporter) readCSVRequest(c *call) (*csvRequest, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter, devicesParameter, metadataPrefix,
		shapeParameter, metricsParameter, columnsParameter, includeParameter, keyParameter)
	if err != nil {
		return nil, err
	}
	asked := &csvRequest{}
	if asked.timeRange, err = readTimeRange(q, roomsensor.ReadingWindows, e.now()); err != nil {
		return nil, err
	}
	if err := asked.readDevices(q); err != nil {
		return nil, err
	}
	if err := asked.readShape(q.Get(shapeParameter)); err != nil {
		return nil, err
	}
	if asked.columns.Metrics, err = roomsensor.ParseMetrics(q.Get(metricsParameter)); err != nil {
		return nil, err
	}
	if err := asked.readColumns(q.Get(columnsParameter)); err != nil {
		return nil, err
	}
	return asked, asked.readInclude(q.Get(includeParameter))
}

func (r *csvRequest) readShape(text *string) error {
	switch {
	case text == nil, *text == "long":
	case *text == "wide":
		r.wide = true
	case strings.EqualFold(*text, "parquet"):
		return roomsensor.Invalid(shapeParameter, "shape must be long or wide. For Parquet, request /readings.parquet.")
	default:
		return roomsensor.Invalid(shapeParameter, "shape must be long or wide.")
	}
	return nil
}

// readColumns reads the parameter that chooses the column names of the wide shape (A6.3).
func (r *csvRequest) readColumns(text *string) error {
	switch {
	case text == nil:
	case *text != "name" && *text != "id":
		return roomsensor.Invalid(columnsParameter, "columns must be name or id.")
	case !r.wide:
		return roomsensor.Invalid(columnsParameter,
			"Only the wide shape takes columns. Send shape=wide too, or leave columns out.")
	default:
		r.columns.ByID = *text == "id"
	}
	return nil
}

// readInclude reads the parameter that adds a column to the long shape (A6.4).
func (r *csvRequest) readInclude(text *string) error {
	switch {
	case text == nil:
	case *text != "ingested_at":
		return roomsensor.Invalid(includeParameter, "include must be ingested_at.")
	case r.wide:
		return roomsensor.Invalid(includeParameter, "Only the long shape takes include. Leave out shape or include.")
	default:
		r.columns.IngestedAt = true
	}
	return nil
}
