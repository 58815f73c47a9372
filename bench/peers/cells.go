package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Cell identifies one value of a reading.
type Cell struct {
	Device uuid.UUID
	At     int64 // start of the bucket, in seconds since 1970
	Metric roomsensor.Metric
}

// Cells contain answers value by value, because those of peers consist of columns or series.
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
		return fmt.Errorf("%w: %s of %s at %d occurs twice", errPeer, cell.Metric, cell.Device, cell.At)
	}
	c[cell] = float32(x)
	return nil
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
