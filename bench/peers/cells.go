package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Cell identifies one value: of a reading, or of its aggregates.
type Cell struct {
	Device uuid.UUID
	At     int64 // start of the bucket, in seconds since 1970
	Metric roomsensor.Metric
	Of     string // aggregate function, or empty for a reading
}

// The aggregate functions. First and Last have the value 1 at the time of the first and of the last reading.
const (
	Min   = "min"
	Max   = "max"
	Mean  = "mean"
	Count = "count"
	First = "first"
	Last  = "last"
)

// Cells contain answers value by value, because those of peers consist of rows, columns or series.
type Cells map[Cell]float32

// Add adds the values of a reading.
func (c Cells) Add(device uuid.UUID, bucket time.Time, v *roomsensor.Values) {
	for _, m := range roomsensor.Metrics {
		if x, ok := v.Get(m); ok {
			c[Cell{Device: device, At: bucket.Unix(), Metric: m}] = x
		}
	}
}

// put adds a value of an answer. A second value for a cell is an error.
func (c Cells) put(cell Cell, x float64) error {
	if _, ok := c[cell]; ok {
		return fmt.Errorf("%w: %s %s of %s at %d occurs twice", errPeer, cell.Of, cell.Metric, cell.Device, cell.At)
	}
	c[cell] = float32(x)
	return nil
}

// putRow adds the values of a row. Its columns are "time" in seconds, "device" and metrics, or their aggregates such as
// "co2_ppm_min", in any order. An empty value is missing. The columns "name" and "tags" of InfluxDB have no meaning
// here.
func (c Cells) putRow(header, row []string) (err error) {
	var cell Cell
	for i, name := range header {
		switch name {
		case "time":
			cell.At, err = strconv.ParseInt(row[i], 10, 64)
		case "device":
			cell.Device, err = uuid.Parse(row[i])
		}
		if err != nil {
			return fmt.Errorf("reading a %s: %w", name, err)
		}
	}
	for i, name := range header {
		if slices.Contains([]string{"time", "device", "name", "tags"}, name) {
			continue
		}
		var known bool
		if cell.Metric, cell.Of, known = parseColumn(name); !known {
			return fmt.Errorf("%w: a column is called %q", errPeer, name)
		}
		if row[i] == "" {
			continue
		}
		x, err := parseNumber(row[i])
		if err == nil {
			err = c.put(cell, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseColumn reads the name of a metric, or of an aggregate of it.
func parseColumn(name string) (m roomsensor.Metric, of string, known bool) {
	if m, known = roomsensor.MetricNamed(name); known {
		return m, "", true
	}
	if i := strings.LastIndexByte(name, '_'); i >= 0 && slices.Contains([]string{Min, Max, Mean, Count}, name[i+1:]) {
		m, known = roomsensor.MetricNamed(name[:i])
		return m, name[i+1:], known
	}
	return m, "", false
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a value: %w", err)
	}
	return x, nil
}

// Series is the name of the readings in both peers.
const Series = "readings"

// AppendLine appends a reading with at least one value in InfluxDB's line protocol, which both peers accept. Its time
// is the start of the bucket in seconds.
func AppendLine(b []byte, device uuid.UUID, bucket time.Time, v *roomsensor.Values) []byte {
	b = append(b, Series+",device="...)
	b = append(b, device.String()...)
	separator := byte(' ')
	for _, m := range roomsensor.Metrics {
		x, ok := v.Get(m)
		if !ok {
			continue
		}
		b = append(append(append(b, separator), m.String()...), '=')
		b = strconv.AppendFloat(b, float64(x), 'f', -1, 32)
		separator = ','
	}
	return append(strconv.AppendInt(append(b, ' '), bucket.Unix(), 10), '\n')
}
