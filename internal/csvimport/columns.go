package csvimport

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// MetricColumn is the column of a metric: value = number x scale + offset.
type MetricColumn struct {
	Metric roomsensor.Metric
	Place  string // COLUMN, COLUMN*SCALE or COLUMN*SCALE+OFFSET
}

// ParseMetricColumn parses METRIC=COLUMN[*SCALE[+OFFSET]]. Its error is a predicate.
func ParseMetricColumn(text string) (c MetricColumn, err error) {
	name, place, found := strings.Cut(text, "=")
	metric, known := roomsensor.MetricNamed(name)
	if !found || !known || place == "" {
		return c, fmt.Errorf("has %q, which is not METRIC=COLUMN with one of the metrics co2_ppm, temp_c, humidity_pct, "+
			"lux and spl_db, such as co2_ppm=CO2 or temp_c=Temperature*0.1-40", text)
	}
	return MetricColumn{metric, place}, nil
}

// places are the positions of columns in a line; -1 means none.
type places struct {
	time, unit, name int
	metrics          [roomsensor.MetricCount]valuePlace
}

type valuePlace struct {
	index         int
	scale, offset float64
}

// scaled is a column with a scale and an offset.
var scaled = regexp.MustCompile(`^(.+)\*([0-9.]+[eE]-[0-9]+|[0-9.eE]+)([+-][0-9.]+)?$`)

// longTime is the column of times of an export in the long shape.
const longTime = "bucket_at"

// findColumns returns the positions of the columns that the options name or, without them, those of an export. Its
// error is a sentence without a period.
func findColumns(header []string, o *Options) (places, error) {
	p := places{time: -1, unit: -1, name: -1}
	for m := range p.metrics {
		p.metrics[m].index = -1
	}
	find := func(name string, at *int) (err error) {
		*at, err = columnNamed(header, name)
		return err
	}
	if o.Time == "" {
		return p, findLong(header, &p, find)
	}
	if err := find(o.Time, &p.time); err != nil {
		return p, err
	}
	if o.Unit != "" {
		if err := find(o.Unit, &p.unit); err != nil {
			return p, err
		}
	}
	for _, c := range o.Metrics {
		v := &p.metrics[c.Metric]
		if v.index >= 0 {
			return p, fmt.Errorf("there are two columns for %s: name one", c.Metric)
		}
		if err := v.find(header, c.Place); err != nil {
			return p, err
		}
	}
	return p, nil
}

// find finds the column of a metric. Its name may contain *.
func (v *valuePlace) find(header []string, place string) (err error) {
	v.scale = 1
	parts := scaled.FindStringSubmatch(place)
	if v.index, err = columnNamed(header, place); err == nil || parts == nil {
		return err
	}
	v.scale, err = strconv.ParseFloat(parts[2], 64)
	if parts[3] != "" && err == nil {
		v.offset, err = strconv.ParseFloat(parts[3], 64)
	}
	if err != nil {
		return fmt.Errorf("the scale or offset of %q is not a number", place)
	}
	v.index, err = columnNamed(header, parts[1])
	return err
}

// findLong finds the columns of an export in the long shape.
func findLong(header []string, p *places, find func(string, *int) error) error {
	if find(longTime, &p.time) != nil || find("device_id", &p.unit) != nil {
		return fmt.Errorf("the file is not an export in the long shape: give --time and --metric. Its columns are %s",
			listed(header))
	}
	_ = find("display_name", &p.name) // It may be missing.
	some := false
	for _, m := range roomsensor.Metrics {
		p.metrics[m].scale = 1
		some = find(m.String(), &p.metrics[m].index) == nil || some
	}
	if !some {
		return fmt.Errorf("the file has no column of a metric. Its columns are %s", listed(header))
	}
	return nil
}

// columnNamed returns the position of a column, or -1 and an error. White space around names does not count.
func columnNamed(header []string, name string) (int, error) {
	at := -1
	for i := range header {
		if strings.TrimSpace(header[i]) != strings.TrimSpace(name) {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("the file has several columns %q", name)
		}
		at = i
	}
	if at < 0 {
		return at, fmt.Errorf("the file has no column %q. Its columns are %s", name, listed(header))
	}
	return at, nil
}

// listed lists columns for a message.
func listed(header []string) string { return fmt.Sprintf("%.2000q", strings.Join(header, ", ")) }

// values reads the metrics of a line (value rule, A11.6). problem is a predicate; empty if there is none.
func (p *places) values(fields []string, decimalComma bool) (v roomsensor.Values, problem string) {
	for _, m := range roomsensor.Metrics {
		place := &p.metrics[m]
		if place.index < 0 {
			continue
		}
		cell := strings.TrimSpace(fields[place.index])
		if mapping.IsNull(cell) {
			continue
		}
		number := cell
		if decimalComma && !strings.Contains(cell, ".") {
			number = strings.Replace(cell, ",", ".", 1)
		}
		if !mapping.IsDecimal([]byte(number)) || (decimalComma && strings.Contains(cell, ".")) {
			return v, fmt.Sprintf("has %.100q for %s, which is not a number", cell, m)
		}
		x, ok := mapping.Convert(m, number, place.scale, place.offset)
		if !ok {
			least, greatest := m.Range()
			return v, fmt.Sprintf("has %.100q for %s, which is outside the range %g to %g", cell, m, least, greatest)
		}
		v.Set(m, x)
	}
	return v, ""
}
