package csvenc

import (
	"strconv"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

// Aggregates appends the CSV of aggregates (A2.2).
type Aggregates struct {
	style   style
	metrics []roomsensor.Metric
	begin   bucketText
	end     bucketText
	devices *deviceCells
}

// NewAggregates makes an Aggregates. devices has the names of all devices that may occur.
func NewAggregates(devices []roomsensor.NamedDevice, columns Columns) *Aggregates {
	s := columns.style()
	return &Aggregates{
		style: s, metrics: columns.Metrics, begin: bucketText{style: s}, devices: newDeviceCells(devices, s),
	}
}

// AppendHeader appends the header row.
func (a *Aggregates) AppendHeader(dst []byte) []byte {
	names := []string{"bucket_end", "device_id", "display_name", "expected", "present"}
	for _, m := range a.metrics {
		for _, suffix := range []string{"_min", "_max", "_mean", "_count"} {
			names = append(names, m.String()+suffix)
		}
	}
	return a.style.appendHeader(dst, names...)
}

// AppendRow appends a line.
func (a *Aggregates) AppendRow(dst []byte, row *aggregate.Row) []byte {
	dst = append(dst, a.begin.format(row.Bucket.From)...)
	dst = append(dst, a.style.separator)
	dst = append(dst, a.end.format(row.Bucket.To)...)
	dst = append(dst, a.devices.get(row.DeviceID)...)
	dst = strconv.AppendInt(append(dst, a.style.separator), int64(row.Expected), 10)
	dst = strconv.AppendInt(append(dst, a.style.separator), int64(row.Present), 10)
	for _, m := range a.metrics {
		dst = a.style.appendSummary(dst, &row.Metrics[m])
	}
	return append(dst, '\n')
}

// appendSummary appends a separator and a cell for each number of a summary.
func (s *style) appendSummary(dst []byte, of *roomsensor.Summary) []byte {
	for _, x := range []float32{of.Min, of.Max, of.Mean} {
		if dst = append(dst, s.separator); of.Count > 0 {
			dst = s.appendNumber(dst, x)
		}
	}
	return strconv.AppendInt(append(dst, s.separator), int64(of.Count), 10)
}

// AppendEnd appends nothing: every line is complete.
func (a *Aggregates) AppendEnd(dst []byte) []byte { return dst }
