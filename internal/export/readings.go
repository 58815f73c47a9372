package export

import (
	"context"
	"errors"
	"fmt"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/parquetenc"
	"roomsensor/internal/roomsensor"
)

// maxWideDevices is the limit of devices in the wide shape (decision 29).
const maxWideDevices = 1000

// prepareReadings opens an export of readings. A Parquet file has a content coding of its own, so that its body gets
// none.
func (e *Exporter) prepareReadings(ctx context.Context, r *Request, p *plan, countOnly bool) (*download, error) {
	rows, err := e.openReadings(ctx, r, p, roomsensor.ExportQuery{
		IngestedAt: r.IngestedAt || r.Format == Parquet, CountOnly: countOnly,
	})
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, p.tooManyRows(tooMany)
	}
	if err != nil {
		return nil, err
	}
	d := &download{
		fileName: p.fileName("readings", "csv", e.now()), contentType: "text/csv; charset=utf-8", coded: true,
		rows: rows.Rows(), lines: rows.Rows(), close: rows.Close,
	}
	columns := r.columns()
	if r.Assigned {
		if columns.Assigned, err = e.assignments(ctx, r, p); err != nil {
			rows.Close()
			return nil, err
		}
	}
	switch {
	case r.Format == Parquet:
		d.fileName, d.contentType = p.fileName("readings", "parquet", e.now()), "application/vnd.apache.parquet"
		d.coded = false
		d.body = func(ctx context.Context, w *writer) error {
			selected := parquetenc.Columns{Metrics: r.Metrics, Zone: r.Local, Assigned: columns.Assigned}
			return sendParquet(ctx, parquetenc.NewWriter(w, p.team, selected), rows)
		}
	case r.Wide:
		d.lines = rows.Lines()
		d.body = func(ctx context.Context, w *writer) error {
			return sendCSV(ctx, w, csvenc.NewWide(p.team, p.devices, columns), rows)
		}
	default:
		d.body = func(ctx context.Context, w *writer) error {
			return sendCSV(ctx, w, csvenc.NewLong(p.team, columns), rows)
		}
	}
	return d, nil
}

// openReadings opens the readings that a plan selects. q has what the plan does not.
func (e *Exporter) openReadings(ctx context.Context, r *Request, p *plan, q roomsensor.ExportQuery) (Readings, error) {
	if r.Wide {
		if err := checkWideCount(len(p.devices)); err != nil {
			return nil, err
		}
	}
	if err := checkDeviceCount(len(p.devices)); err != nil {
		return nil, err
	}
	if p.empty() {
		return noRows{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	q.Window, q.Devices, q.ExternalRef, q.Lines = p.window, p.devices, r.Devices.ExternalRef, r.Wide
	return e.backend.OpenExport(ctx, r.TeamID, q)
}

// assignments returns the assignments that held the devices of a plan. Its error is csv_too_large if they are more than
// an export may name (A18.3).
func (e *Exporter) assignments(ctx context.Context, r *Request, p *plan) ([]roomsensor.Assignment, error) {
	held, err := e.backend.HeldAssignments(ctx, r.TeamID, p.devices, p.window)
	if err != nil || len(held) <= roomsensor.MaxExportAssignments {
		return held, err
	}
	return nil, tooManyAssignments(p.window)
}

// tooManyAssignments returns csv_too_large for the assignments in a window.
func tooManyAssignments(w roomsensor.Window) error {
	until := w.From.Add(w.To.Sub(w.From) / 2) //nolint:mnd // The first half.
	return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
		"The devices have more than %d assignments in the window. Ask for from=%s&to=%s or name fewer devices.",
		roomsensor.MaxExportAssignments, roomsensor.FormatTime(w.From), roomsensor.FormatTime(until)))
}

// measure counts the rows and lines of an export of readings.
func (e *Exporter) measure(ctx context.Context, r *Request) (size Size, err error) {
	p, err := e.plan(ctx, r)
	if err != nil {
		return size, err
	}
	size.Devices, size.Metrics = len(p.devices), len(r.Metrics)
	if r.Sheet != nil && r.Sheet.Means != "" {
		lines, err := e.openSheetRows(ctx, r, p, true)
		if err == nil {
			size.Rows, size.Lines = lines.Rows(), lines.Rows()
		}
		return size, err
	}
	rows, err := e.openReadings(ctx, r, p, roomsensor.ExportQuery{CountOnly: true})
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		size.TooMany = tooMany
		return size, nil
	}
	if err != nil {
		return size, err
	}
	defer rows.Close()
	size.Rows, size.Lines = rows.Rows(), rows.Rows()
	if r.Wide {
		size.Lines = rows.Lines()
	}
	return size, nil
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

// noRows is the export of a plan that selects nothing. Its CSV has only the header row.
type noRows struct{}

func (noRows) Rows() int  { return 0 }
func (noRows) Lines() int { return 0 }
func (noRows) Close()     {}

func (noRows) Each(context.Context, func(*roomsensor.ExportRow) error) error { return nil }

// tooManyRows returns csv_too_large with the number of rows and the window that would fit (decision 30).
func (p *plan) tooManyRows(e *roomsensor.TooManyRowsError) error {
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

// sendParquet sends all rows of an export. Without the footer, which Close writes, no reader opens the file.
func sendParquet(ctx context.Context, file *parquetenc.Writer, rows Readings) error {
	if err := sendRows(ctx, rows, file.Write); err != nil {
		return err
	}
	return file.Close()
}
