package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// influxAnswer is an answer whose values are numbers or null.
type influxAnswer struct {
	Results []struct {
		Error  string         `json:"error"`
		Series []influxSeries `json:"series"`
	} `json:"results"`
}

type influxSeries struct {
	Tags struct {
		Device uuid.UUID `json:"device"`
	} `json:"tags"`
	Columns []string     `json:"columns"` // the first is the time
	Values  [][]*float64 `json:"values"`
}

// all returns the series of the only statement.
func (a *influxAnswer) all() ([]influxSeries, error) {
	if len(a.Results) != 1 || a.Results[0].Error != "" {
		return nil, fmt.Errorf("%w: %+v", errPeer, a.Results)
	}
	return a.Results[0].Series, nil
}

func readInfluxCount(body []byte) (int, error) {
	var a influxAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	series, err := a.all()
	if err != nil || len(series) == 0 {
		return 0, err // Without readings there is no count.
	}
	return int(*series[0].Values[0][1]), nil
}

// readInfluxRows reads readings that are grouped by device.
func readInfluxRows(body io.Reader) (Cells, error) {
	var a influxAnswer
	if err := json.NewDecoder(body).Decode(&a); err != nil {
		return nil, fmt.Errorf("reading rows: %w", err)
	}
	list, err := a.all()
	if err != nil {
		return nil, err
	}
	cells := Cells{}
	for i := range list {
		if err := list[i].into(cells); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

func (s *influxSeries) into(cells Cells) error {
	for _, row := range s.Values {
		for i, x := range row[1:] {
			metric, ok := roomsensor.MetricNamed(s.Columns[i+1])
			if !ok {
				return fmt.Errorf("%w: a column is called %q", errPeer, s.Columns[i+1])
			}
			if x == nil {
				continue
			}
			if err := cells.put(Cell{s.Tags.Device, int64(*row[0]), metric}, *x); err != nil {
				return err
			}
		}
	}
	return nil
}

// readInfluxCSV reads a table in which the device is a column.
func readInfluxCSV(body io.Reader) (Cells, error) {
	lines := csv.NewReader(body)
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the header of a CSV: %w", err)
	}
	cells := Cells{}
	lines.ReuseRecord = true
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err == nil {
			err = cells.putLine(header, line)
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
	}
}

func (c Cells) putLine(header, line []string) (err error) {
	var cell Cell
	for i, name := range header { // The cell first: columns are in the order of their names.
		switch name {
		case "time":
			cell.At, err = strconv.ParseInt(line[i], 10, 64)
		case "device":
			cell.Device, err = uuid.Parse(line[i])
		}
		if err != nil {
			return fmt.Errorf("reading a %s: %w", name, err)
		}
	}
	for i, name := range header {
		var isMetric bool
		if cell.Metric, isMetric = roomsensor.MetricNamed(name); !isMetric || line[i] == "" {
			continue
		}
		x, err := parseNumber(line[i])
		if err == nil {
			err = c.put(cell, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
