package api

import (
	"context"
	"fmt"

	"roomsensor/internal/parquetenc"
	"roomsensor/internal/roomsensor"
)

// parquetRequest has the parameters of GET /readings.parquet.
type parquetRequest struct {
	exportRequest
	metrics []roomsensor.Metric
}

// exportParquet handles GET /readings.parquet: it streams readings of the team as a Parquet file (A7).
func (e *exporter) exportParquet(ctx context.Context, c *call) error {
	asked, err := e.readParquetRequest(c)
	if err != nil {
		return err
	}
	return e.sendExport(ctx, c, func(ctx context.Context) (*download, error) { return e.prepareParquet(ctx, c, asked) })
}

// readParquetRequest reads the parameters, each by its own rule.
func (e *exporter) readParquetRequest(c *call) (*parquetRequest, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter, devicesParameter, metadataPrefix,
		metricsParameter, keyParameter)
	if err != nil {
		return nil, err
	}
	asked := &parquetRequest{}
	if asked.timeRange, err = readTimeRange(q, roomsensor.ReadingWindows, e.now()); err != nil {
		return nil, err
	}
	if err := asked.readDevices(q); err != nil {
		return nil, err
	}
	asked.metrics, err = roomsensor.ParseMetrics(q.Get(metricsParameter))
	return asked, err
}

// prepareParquet opens the export. The file has a content coding of its own, so that the body gets none. Its index is
// at its end: a reader that asks for a range of bytes would count all rows again for each.
func (e *exporter) prepareParquet(ctx context.Context, c *call, asked *parquetRequest) (*download, error) {
	plan, err := e.planExport(ctx, c, &asked.exportRequest)
	if err != nil {
		return nil, err
	}
	export, err := e.openReadings(ctx, c, plan, roomsensor.ExportQuery{IngestedAt: true})
	if err != nil {
		return nil, err
	}
	c.setHeader("Accept-Ranges", "none")
	return &download{
		fileName: plan.fileName("readings", "parquet", e.now()), contentType: "application/vnd.apache.parquet",
		rows: export.Rows(), lines: export.Rows(), close: export.Close,
		body: func(ctx context.Context, w *exportWriter) error {
			return sendParquet(ctx, parquetenc.NewWriter(w, plan.team, asked.metrics), export)
		},
	}, nil
}

// sendParquet sends all rows of an export. Without the footer, which Close writes, no reader opens the file.
func sendParquet(ctx context.Context, file *parquetenc.Writer, export Export) error {
	sent := 0
	err := export.Each(ctx, func(row *roomsensor.ExportRow) error {
		sent++
		return file.Write(row)
	})
	if err != nil {
		return fmt.Errorf("reading an export: %w", err)
	}
	if err := checkRows(export.Rows(), sent); err != nil {
		return err
	}
	return file.Close()
}
