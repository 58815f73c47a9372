package api

import (
	"context"

	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// The names of the exports, which are the last segments of their paths. Their URLs may hold a key (decision 26).
const (
	readingsCSV     = "readings.csv"
	readingsParquet = "readings.parquet"
	aggregatesCSV   = "aggregates.csv"
	nightsCSV       = "nights.csv"
)

// exportNames lists the exports.
var exportNames = []string{readingsCSV, readingsParquet, aggregatesCSV, nightsCSV}

const fillParameter = "fill"

// exportReadings handles GET /readings.csv (spec 4, readings.csv) and GET /readings.parquet (A7).
func (s *server) exportReadings(format export.Format) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		r, err := export.ParseReadings(c.Request().URL.RawQuery, format, s.now())
		if err != nil {
			return err
		}
		return s.sendExport(ctx, c, r)
	}
}

// exportAggregates handles GET /aggregates.csv (A2).
func (s *server) exportAggregates(ctx context.Context, c *call) error {
	r, err := s.readAggregateExport(c)
	if err != nil {
		return err
	}
	return s.sendExport(ctx, c, r)
}

// sendExport sends an export to the team of the key.
func (s *server) sendExport(ctx context.Context, c *call, r *export.Request) (err error) {
	r.TeamID, r.Requester = c.key.TeamID, c.key.ID
	r.Recheck = func(ctx context.Context) error { return s.recheck(ctx, c) }
	c.rows, err = s.exports.Send(ctx, c, r)
	return err
}

// readAggregateExport reads the parameters of GET /aggregates.csv, each by its own rule.
func (s *server) readAggregateExport(c *call) (*export.Request, error) {
	q, err := c.query(intervalParameter, timeZoneParameter, metricsParameter, fromParameter, toParameter, lastParameter,
		assignmentParameter, externalRefParameter, devicesParameter, metadataPrefix, fillParameter, export.ExcelParameter,
		keyParameter)
	if err != nil {
		return nil, err
	}
	asked, err := s.readAggregateRequest(q)
	if err != nil {
		return nil, err
	}
	r := &export.Request{
		Format: export.AggregatesCSV, Times: asked.times, Metrics: asked.metrics, Interval: asked.interval, Zone: asked.zone,
	}
	if r.Devices, err = httpedge.ReadDevices(q); err != nil {
		return nil, err
	}
	if err := r.ReadLocal(q); err != nil {
		return nil, err
	}
	switch text := q.Get(fillParameter); {
	case text == nil, *text == "false":
	case *text == "true":
		r.Fill = true
	default:
		return nil, roomsensor.Invalid(fillParameter, "fill must be true or false.")
	}
	return r, nil
}
