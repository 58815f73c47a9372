package client

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// DeviceReading is a reading with its device.
type DeviceReading struct {
	Reading
	DeviceID uuid.UUID `json:"device_id"`
}

// ExportReadings returns the readings of many devices, ordered by time and then by device. It reads them from one CSV
// export while the loop runs, so that the same limits apply as for ExportCSV, and only Window, Devices,
// Metadata, ExternalRef and Metrics may be set. A loop that gets no error has seen all readings.
func (c *Client) ExportReadings(ctx context.Context, q ExportQuery) iter.Seq2[DeviceReading, error] {
	return func(yield func(DeviceReading, error) bool) {
		if q.Shape != "" || q.ColumnIDs || q.IngestedAt || q.Assignment || q.TimeZone != "" || q.Excel != "" {
			yield(DeviceReading{}, errors.New("ExportReadings chooses the columns itself: set only the window, the devices, "+
				"the metadata, the external_ref and the metrics"))
			return
		}
		q.IngestedAt = true
		e, err := c.ExportCSV(ctx, q)
		if err != nil {
			yield(DeviceReading{}, err)
			return
		}
		defer func() { _ = e.Close() }() // It was read to its end, or is not needed.
		for r, err := range ReadCSV(e) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// ReadCSV returns the readings of a CSV file in the shape Long. After an error it ends. Other columns than those of a
// DeviceReading are ignored. A metric without a column is nil, and IngestedAt is zero without its column. The columns
// device_id and bucket_at must exist: a file in the shape Wide has no device_id.
func ReadCSV(file io.Reader) iter.Seq2[DeviceReading, error] {
	return func(yield func(DeviceReading, error) bool) {
		rows := csv.NewReader(file)
		rows.ReuseRecord = true
		header, err := rows.Read()
		if err == nil && (!slices.Contains(header, "device_id") || !slices.Contains(header, "bucket_at")) {
			err = errors.New("the first line must have the columns device_id and bucket_at")
		}
		if err != nil {
			yield(DeviceReading{}, fmt.Errorf("reading an export: %w", err))
			return
		}
		columns := make([]setter, len(header))
		for i, name := range header {
			columns[i] = column(name)
		}
		for {
			r, err := readRow(rows, columns)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err = fmt.Errorf("reading an export: %w", err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// setter sets a field of a reading from a cell.
type setter func(r *DeviceReading, cell string) error

func readRow(rows *csv.Reader, columns []setter) (r DeviceReading, err error) {
	fields, err := rows.Read()
	if err != nil {
		return r, err //nolint:wrapcheck // Wrapped by ReadCSV.
	}
	for i, field := range fields {
		if err := columns[i](&r, field); err != nil {
			return r, fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return r, nil
}

// column returns the function that sets a field of a reading from a cell of the column with that name.
func column(name string) setter {
	switch Metric(name) {
	case CO2PPM:
		return metric(func(r *DeviceReading) **float64 { return &r.CO2PPM })
	case TempC:
		return metric(func(r *DeviceReading) **float64 { return &r.TempC })
	case HumidityPct:
		return metric(func(r *DeviceReading) **float64 { return &r.HumidityPct })
	case Lux:
		return metric(func(r *DeviceReading) **float64 { return &r.Lux })
	case SPLDB:
		return metric(func(r *DeviceReading) **float64 { return &r.SPLDB })
	case "device_id":
		return func(r *DeviceReading, cell string) (err error) {
			r.DeviceID, err = uuid.Parse(cell)
			return err //nolint:wrapcheck // Wrapped by ReadCSV.
		}
	case "bucket_at":
		return instant(func(r *DeviceReading) *time.Time { return &r.BucketAt })
	case "ingested_at":
		return instant(func(r *DeviceReading) *time.Time { return &r.IngestedAt })
	}
	return func(*DeviceReading, string) error { return nil }
}

func metric(field func(*DeviceReading) **float64) setter {
	return func(r *DeviceReading, cell string) error {
		if cell == "" {
			return nil
		}
		x, err := strconv.ParseFloat(cell, 64)
		*field(r) = &x
		return err //nolint:wrapcheck // Wrapped by ReadCSV.
	}
}

func instant(field func(*DeviceReading) *time.Time) setter {
	return func(r *DeviceReading, cell string) (err error) {
		*field(r), err = time.Parse(time.RFC3339, cell)
		return err //nolint:wrapcheck // Wrapped by ReadCSV.
	}
}
