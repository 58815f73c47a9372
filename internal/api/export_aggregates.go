package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
)

const fillParameter = "fill"

// aggregateOpenTimeout limits the reading of all lines of an export of aggregates, which precedes its first byte.
// Proxies often wait for a minute.
const aggregateOpenTimeout = 55 * time.Second

// aggregateExportRequest has the parameters of GET /aggregates.csv.
type aggregateExportRequest struct {
	exportRequest
	aggregateRequest
	fill bool
}

// exportAggregates handles GET /aggregates.csv (A2).
func (s *server) exportAggregates(ctx context.Context, c *call) error {
	asked, err := s.readAggregateExportRequest(c)
	if err != nil {
		return err
	}
	return s.sendExport(ctx, c, func(ctx context.Context) (*download, error) { return s.prepareAggregates(ctx, c, asked) })
}

func (s *server) prepareAggregates(
	ctx context.Context, c *call, asked *aggregateExportRequest,
) (*download, error) {
	now := s.now().Truncate(time.Microsecond)
	plan, err := s.planExport(ctx, c, &asked.exportRequest)
	if err != nil {
		return nil, err
	}
	if plan.ongoing {
		plan.window = plan.window.Intersect(roomsensor.Window{To: now})
	}
	plan.window = roomsensor.Expressible(plan.window)
	lines, err := s.openAggregates(ctx, c, plan, roomsensor.AggregateExportQuery{
		Calendar: roomsensor.NewCalendar(asked.interval, asked.zone), Metrics: asked.metrics, Fill: asked.fill, Now: now,
		CountOnly: c.Request().Method == http.MethodHead,
	})
	if err != nil {
		return nil, err
	}
	return &download{
		fileName: plan.fileName("aggregates", "csv", now), contentType: "text/csv; charset=utf-8", coded: true,
		rows: lines.Rows(), lines: lines.Rows(), close: func() {},
		body: func(ctx context.Context, w *exportWriter) error {
			return sendCSV(ctx, w, csvenc.NewAggregates(plan.team, asked.metrics), lines)
		},
	}, nil
}

// openAggregates reads the lines of the devices and the window that a plan selects. q has what the plan does not.
func (s *server) openAggregates(
	ctx context.Context, c *call, plan *exportPlan, q roomsensor.AggregateExportQuery,
) (AggregateLines, error) {
	if err := checkDeviceCount(len(plan.devices)); err != nil {
		return nil, err
	}
	if plan.empty() {
		return noLines{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aggregateOpenTimeout)
	defer cancel()
	q.Window, q.Devices = plan.window, plan.devices
	lines, err := s.backend.OpenAggregates(ctx, c.key.TeamID, q)
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, tooManyLines(tooMany, q.Fill)
	}
	return lines, err
}

// noLines are those of a plan that selects nothing.
type noLines struct{}

func (noLines) Rows() int { return 0 }

func (noLines) Each(context.Context, func(*roomsensor.AggregateRow) error) error { return nil }

// tooManyLines returns csv_too_large with the number of lines and what makes them fewer (A2.3).
func tooManyLines(e *roomsensor.TooManyRowsError, fill bool) error {
	fix := "Ask for a shorter window or for interval=1d, or name fewer devices."
	if fill {
		fix = "Ask for a shorter window or for interval=1d, name fewer devices, or leave out fill."
	}
	return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
		"The export would have %s lines; at most %d are allowed. %s", e.Count(), roomsensor.MaxExportRows, fix))
}

// readAggregateExportRequest reads the parameters, each by its own rule.
func (s *server) readAggregateExportRequest(c *call) (asked *aggregateExportRequest, err error) {
	q, err := c.query(intervalParameter, timeZoneParameter, metricsParameter, fromParameter, toParameter, lastParameter,
		assignmentParameter, devicesParameter, metadataPrefix, fillParameter, keyParameter)
	if err != nil {
		return nil, err
	}
	asked = &aggregateExportRequest{}
	if asked.aggregateRequest, err = s.readAggregateRequest(q); err != nil {
		return nil, err
	}
	asked.timeRange = asked.times
	if err := asked.readDevices(q); err != nil {
		return nil, err
	}
	switch text := q.Get(fillParameter); {
	case text == nil, *text == "false":
	case *text == "true":
		asked.fill = true
	default:
		return nil, roomsensor.Invalid(fillParameter, "fill must be true or false.")
	}
	return asked, nil
}
