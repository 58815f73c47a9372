package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// victoriaLabels are those of a series.
type victoriaLabels struct {
	Name   string    `json:"__name__"` //nolint:tagliatelle // Its own name.
	Device uuid.UUID `json:"device"`
}

// victoriaVector is the answer to a query at an instant.
type victoriaVector struct {
	Data struct {
		Result []struct {
			Metric victoriaLabels `json:"metric"`
			Value  [2]any         `json:"value"` // the instant, and the value as text
		} `json:"result"`
	} `json:"data"`
}

func (v *victoriaVector) value(i int) (float64, error) {
	text, _ := v.Data.Result[i].Value[1].(string)
	return parseNumber(text)
}

func readVictoriaCount(body []byte) (int, error) {
	var v victoriaVector
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	if len(v.Data.Result) == 0 {
		return 0, nil // Without series there is no sum.
	}
	n, err := v.value(0)
	return int(n), err
}

// readVictoriaLatest assigns every value the time of its device's newest reading.
func readVictoriaLatest(body io.Reader) (Cells, error) {
	var v victoriaVector
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		return nil, fmt.Errorf("reading an instant: %w", err)
	}
	cells, at := Cells{}, map[uuid.UUID]int64{}
	for i, r := range v.Data.Result {
		if x, err := v.value(i); err != nil {
			return nil, err
		} else if r.Metric.Name == newestAt {
			at[r.Metric.Device] = int64(x)
		}
	}
	for i, r := range v.Data.Result {
		if r.Metric.Name == newestAt {
			continue
		}
		x, _ := v.value(i) // Read above.
		if err := cells.putNamed(r.Metric, at[r.Metric.Device], x); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

func (c Cells) putNamed(of victoriaLabels, at int64, x float64) error {
	name, ok := strings.CutPrefix(of.Name, Series+"_")
	metric, known := roomsensor.MetricNamed(name)
	if !ok || !known {
		return fmt.Errorf("%w: a series is called %q", errPeer, of.Name)
	}
	return c.put(Cell{of.Device, at, metric}, x)
}

// readVictoriaSeries reads one JSON object per series.
func readVictoriaSeries(body io.Reader) (Cells, error) {
	cells := Cells{}
	for decoder := json.NewDecoder(body); ; {
		var series struct {
			Metric     victoriaLabels `json:"metric"`
			Values     []float64      `json:"values"`
			Timestamps []int64        `json:"timestamps"` // milliseconds
		}
		err := decoder.Decode(&series)
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err == nil && len(series.Values) != len(series.Timestamps) {
			err = errPeer
		}
		if err != nil {
			return nil, fmt.Errorf("reading a series: %w", err)
		}
		for i, x := range series.Values {
			if err := cells.putNamed(series.Metric, time.UnixMilli(series.Timestamps[i]).Unix(), x); err != nil {
				return nil, err
			}
		}
	}
}

// readVictoriaCSV reads time, device, metric and value of each line.
func readVictoriaCSV(body io.Reader) (Cells, error) {
	cells, lines := Cells{}, csv.NewReader(body)
	lines.FieldsPerRecord, lines.ReuseRecord = 4, true
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
		at, err := strconv.ParseInt(line[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading a time: %w", err)
		}
		device, err := uuid.Parse(line[1])
		if err != nil {
			return nil, fmt.Errorf("reading a device: %w", err)
		}
		x, err := parseNumber(line[3])
		if err == nil {
			err = cells.putNamed(victoriaLabels{line[2], device}, at, x)
		}
		if err != nil {
			return nil, err
		}
	}
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a value: %w", err)
	}
	return x, nil
}
