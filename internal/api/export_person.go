package api

import (
	"context"
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// maxPersonExports is how many exports a process of the dashboard runs at the same time: as many as store.Dashboard has
// connections for them. A team gets two of four if it is alone.
const maxPersonExports = 4

// PersonExporter counts and sends the exports of people who are signed in to the dashboard, with the parameters, the
// rules and the code of GET /readings.csv and GET /readings.parquet. In the limits, a person takes the place of a key.
type PersonExporter struct{ exporter exporter }

// NewPersonExporter returns a PersonExporter. now may be nil, which means time.Now.
func NewPersonExporter(backend Backend, now func() time.Time) *PersonExporter {
	if now == nil {
		now = time.Now
	}
	return &PersonExporter{exporter{backend, newExportSlots(maxPersonExports), now, requestTimeout}}
}

// personCall returns a request of the API in place of that of a person.
func personCall(ctx context.Context, c echo.Context, e roomsensor.PersonExport) *call {
	request := c.Request().Clone(ctx)
	request.URL.RawQuery = e.Query
	c.SetRequest(request)
	return &call{Context: c, key: roomsensor.Key{ID: e.UserID.String(), TeamID: e.TeamID}, rows: -1}
}

// Send answers a request with an export. If its error comes after the first byte, the caller must break the connection.
func (p *PersonExporter) Send(ctx context.Context, c echo.Context, e roomsensor.PersonExport) error {
	call := personCall(ctx, c, e)
	if e.Parquet {
		return p.exporter.exportParquet(ctx, call)
	}
	return p.exporter.exportCSV(ctx, call)
}

// Count returns the size of an export, also of one that has too many rows. It checks all parameters; its error is a
// *roomsensor.Error with the parameter at fault.
func (p *PersonExporter) Count(
	ctx context.Context, c echo.Context, e roomsensor.PersonExport,
) (size roomsensor.ExportSize, err error) {
	before := c.Request()
	defer c.SetRequest(before)
	call := personCall(ctx, c, e)
	asked := &csvRequest{}
	if e.Parquet {
		var parquet *parquetRequest
		if parquet, err = p.exporter.readParquetRequest(call); err == nil {
			asked.exportRequest, asked.columns.Metrics = parquet.exportRequest, parquet.metrics
		}
	} else {
		asked, err = p.exporter.readCSVRequest(call)
	}
	if err != nil {
		return size, err
	}
	slot, ok := p.exporter.slots.acquire(call.key)
	if !ok {
		return size, httpedge.Overloaded(exportRetryAfter,
			"Too many exports run at the same time. Try again in a few seconds.")
	}
	defer slot.release()
	return p.exporter.measure(ctx, call, asked)
}

// measure counts the rows and lines of an export.
func (e *exporter) measure(ctx context.Context, c *call, asked *csvRequest) (size roomsensor.ExportSize, err error) {
	plan, err := e.planExport(ctx, c, &asked.exportRequest)
	if err != nil {
		return size, err
	}
	size.Devices, size.Metrics = len(plan.devices), len(asked.columns.Metrics)
	if asked.wide {
		if err := checkWideCount(size.Devices); err != nil {
			return size, err
		}
	}
	export, err := e.countReadings(ctx, c, plan, roomsensor.ExportQuery{Lines: asked.wide, CountOnly: true})
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		size.TooMany = tooMany
		return size, nil
	}
	if err != nil {
		return size, err
	}
	defer export.Close()
	size.Rows, size.Lines = export.Rows(), export.Rows()
	if asked.wide {
		size.Lines = export.Lines()
	}
	return size, nil
}
