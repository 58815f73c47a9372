package workload

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"time"

	"roomsensor/bench/load"
	"roomsensor/internal/roomsensor"
)

// Daily returns the aggregation of P6: of all devices, for some whole days.
func (s *Suite) Daily() *Aggregation {
	to := s.Fleet.Until.Truncate(day)
	days := min(s.DailyDays, int(to.Sub(s.Fleet.From())/day))
	devices := make([]int, s.Fleet.Devices)
	for i := range devices {
		devices[i] = i
	}
	return &Aggregation{devices, roomsensor.Window{From: to.AddDate(0, 0, -days), To: to}, day}
}

// CheckDaily compares the CSV of P6 with the fleet, and returns the query that repeats it.
func (s *Suite) CheckDaily(ctx context.Context, a *Aggregation) (*Query, error) {
	path := "/aggregates.csv?interval=1d&" + span(a.Window)
	body, err := s.body(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := s.checkDaily(a, body); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	digest, err := load.Digest(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return &Query{s, func(ctx context.Context, c *client, _ int) error {
		answer, err := c.get(ctx, path)
		if err == nil && answer.Hash != digest.Hash {
			return errDiffers
		}
		return err
	}}, nil
}

// checkDaily compares the lines of a CSV, which has one for each day of a device with readings.
func (s *Suite) checkDaily(a *Aggregation, body []byte) error {
	lines, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil {
		return fmt.Errorf("reading a CSV: %w", err)
	}
	answer, names := s.Answer(a), map[string]int{}
	for i := range a.Devices {
		names[s.Fleet.DeviceID(i).String()] = i
	}
	found := 0
	for _, line := range lines[1:] {
		cells := map[string]string{}
		for i, name := range lines[0] {
			cells[name] = line[i]
		}
		n, err := s.checkDay(a, names, cells, answer)
		if err != nil {
			return err
		}
		found += n
	}
	if found != len(answer) {
		return fmt.Errorf("%w: statistics of %d metrics instead of %d", errBody, found, len(answer))
	}
	return nil
}

// checkDay compares a line, by column, and returns the number of its metrics with values.
func (s *Suite) checkDay(
	a *Aggregation, names map[string]int, cells map[string]string, answer Aggregates,
) (metrics int, err error) {
	at, err := time.Parse(time.RFC3339, cells["bucket_at"])
	i, known := names[cells["device_id"]]
	if err != nil || !known {
		return 0, fmt.Errorf("%w: a line is %v: %w", errBody, cells, err)
	}
	id := s.Fleet.DeviceID(i)
	readings := answer[BucketMetric{id, at.Unix(), roomsensor.CO2}].Count
	if cells["bucket_end"] != at.Add(a.Bucket).Format(time.RFC3339) || cells["display_name"] != s.Fleet.Name(i) ||
		cells["expected"] != strconv.Itoa(BucketsPerDay) || cells["present"] != strconv.Itoa(readings) {
		return 0, fmt.Errorf("%w: a line is %v", errBody, cells)
	}
	for _, m := range roomsensor.Metrics {
		want, ok := answer[BucketMetric{id, at.Unix(), m}]
		if !ok {
			continue
		}
		metrics++
		for name, text := range map[string]string{
			"min": formatValue(want.Min), "max": formatValue(want.Max), "mean": formatValue(want.Mean),
			"count": strconv.Itoa(want.Count),
		} {
			if got := cells[m.String()+"_"+name]; got != text {
				return 0, fmt.Errorf("%w: the %s of %s in a line is %s, not %s", errBody, name, m, got, text)
			}
		}
	}
	return metrics, nil
}

// formatValue returns the shortest text of a value.
func formatValue(x float32) string { return strconv.FormatFloat(float64(x), 'f', -1, 32) }
