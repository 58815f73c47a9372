package csvenc

import (
	"strconv"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

// Aggregates appends the CSV of aggregates (A2.2).
type Aggregates struct {
	metrics []roomsensor.Metric
	begin   bucketText
	end     bucketText
	devices *deviceCells
}

// NewAggregates makes an Aggregates with the columns of some metrics. devices has the names of all devices that may
// occur.
func NewAggregates(devices []roomsensor.NamedDevice, metrics []roomsensor.Metric) *Aggregates {
	return &Aggregates{metrics: metrics, devices: newDeviceCells(devices)}
}

// AppendHeader appends the header row.
func (a *Aggregates) AppendHeader(dst []byte) []byte {
	dst = append(dst, "bucket_at,bucket_end,device_id,display_name,expected,present"...)
	for _, m := range a.metrics {
		for _, suffix := range []string{"_min", "_max", "_mean", "_count"} {
			dst = append(append(append(dst, ','), m.String()...), suffix...)
		}
	}
	return append(dst, '\n')
}

// AppendRow appends a line.
func (a *Aggregates) AppendRow(dst []byte, row *aggregate.Row) []byte {
	dst = append(dst, a.begin.format(row.Bucket.From)...)
	dst = append(dst, ',')
	dst = append(dst, a.end.format(row.Bucket.To)...)
	dst = append(dst, a.devices.get(row.DeviceID)...)
	dst = strconv.AppendInt(append(dst, ','), int64(row.Expected), 10)
	dst = strconv.AppendInt(append(dst, ','), int64(row.Present), 10)
	for _, m := range a.metrics {
		dst = appendSummary(dst, &row.Metrics[m])
	}
	return append(dst, '\n')
}

// appendSummary appends a comma and a cell for each number of a summary.
func appendSummary(dst []byte, s *roomsensor.Summary) []byte {
	if s.Count == 0 {
		return append(dst, ",,,,0"...)
	}
	dst = roomsensor.AppendNumber(append(dst, ','), s.Min)
	dst = roomsensor.AppendNumber(append(dst, ','), s.Max)
	dst = roomsensor.AppendNumber(append(dst, ','), s.Mean)
	return strconv.AppendInt(append(dst, ','), int64(s.Count), 10)
}

// AppendEnd appends nothing: every line is complete.
func (a *Aggregates) AppendEnd(dst []byte) []byte { return dst }
