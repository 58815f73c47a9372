package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Statistics are the aggregates of one metric in one bucket.
type Statistics struct {
	Min   float32 `json:"min"`
	Max   float32 `json:"max"`
	Mean  float32 `json:"mean"`
	Count int     `json:"count"`
}

// BucketMetric identifies Statistics.
type BucketMetric struct {
	Device uuid.UUID
	At     int64 // start of the bucket, in seconds since 1970
	Metric roomsensor.Metric
}

// Aggregates are the statistics of all buckets with a value.
type Aggregates map[BucketMetric]Statistics

// Aggregation is a question for the aggregates of some devices in a window of whole buckets.
type Aggregation struct {
	Devices []int
	Window  roomsensor.Window
	Bucket  time.Duration
}

// hourlyDevices is the number of devices of P5, one per request.
const hourlyDevices = 32

// Hourly returns the aggregations of P5: of one device each, for the hours of the whole history.
func (s *Suite) Hourly() (aggregations []*Aggregation) {
	w := roomsensor.Window{
		From: s.Fleet.From().Add(time.Hour - time.Nanosecond).Truncate(time.Hour), To: s.Fleet.Until.Truncate(time.Hour),
	}
	for i := range min(hourlyDevices, s.Fleet.Deep) {
		aggregations = append(aggregations, &Aggregation{[]int{i * deviceStride % s.Fleet.Deep}, w, time.Hour})
	}
	return aggregations
}

// Buckets returns the number of buckets.
func (a *Aggregation) Buckets() int { return int(a.Window.To.Sub(a.Window.From) / a.Bucket) }

// Answer computes the aggregates from the readings of the fleet. Sums of 64 bits are exact: a bucket has few readings
// of few digits.
func (s *Suite) Answer(a *Aggregation) Aggregates {
	answer := Aggregates{}
	for from := a.Window.From; from.Before(a.Window.To); from = from.Add(a.Bucket) {
		for _, i := range a.Devices {
			s.aggregate(answer, i, roomsensor.Window{From: from, To: from.Add(a.Bucket)})
		}
	}
	return answer
}

// aggregate adds the statistics of a device in a bucket.
func (s *Suite) aggregate(answer Aggregates, device int, bucket roomsensor.Window) {
	var all [roomsensor.MetricCount]Statistics
	var sums [roomsensor.MetricCount]float64
	for at := bucket.From; at.Before(bucket.To); at = at.Add(roomsensor.BucketLength) {
		if device >= s.Fleet.Present(at) {
			continue
		}
		reading := s.Fleet.Reading(device, at)
		for _, m := range roomsensor.Metrics {
			x, ok := reading.Values.Get(m)
			if !ok {
				continue
			}
			if all[m].Count == 0 {
				all[m].Min, all[m].Max = x, x
			}
			all[m].Min, all[m].Max = min(all[m].Min, x), max(all[m].Max, x)
			all[m].Count++
			sums[m] += float64(x)
		}
	}
	id := s.Fleet.DeviceID(device)
	for _, m := range roomsensor.Metrics {
		if n := all[m].Count; n > 0 {
			all[m].Mean = float32(sums[m] / float64(n))
			answer[BucketMetric{id, bucket.From.Unix(), m}] = all[m]
		}
	}
}

// CheckHourly compares all pages of each aggregation of P5 with the fleet, and returns the query that repeats them.
func (s *Suite) CheckHourly(ctx context.Context, aggregations []*Aggregation) (*Query, error) {
	var lists []*list
	for _, a := range aggregations {
		path := fmt.Sprintf("/devices/%s/aggregates?interval=1h&limit=%d&%s", s.Fleet.DeviceID(a.Devices[0]),
			roomsensor.MaxPage, span(a.Window))
		checked, err := s.checkList(ctx, path, func(pages [][]byte) error { return s.checkHourly(a, pages) })
		if err != nil {
			return nil, err
		}
		lists = append(lists, checked)
	}
	return s.list(lists), nil
}

// checkHourly compares the pages of an aggregation, which list each bucket once, the newest first.
func (s *Suite) checkHourly(a *Aggregation, pages [][]byte) error {
	answer, at := s.Answer(a), a.Window.To
	for _, page := range pages {
		var items []map[string]json.RawMessage
		if err := json.Unmarshal(page, &items); err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		for _, item := range items {
			at = at.Add(-a.Bucket)
			if err := checkAggregate(item, s.Fleet.DeviceID(a.Devices[0]), at, a.Bucket, answer); err != nil {
				return err
			}
		}
	}
	if !at.Equal(a.Window.From) {
		return fmt.Errorf("%w: the oldest bucket is %s", errBody, at)
	}
	return nil
}

// checkAggregate compares an item with the statistics of a bucket.
func checkAggregate(
	item map[string]json.RawMessage, device uuid.UUID, at time.Time, length time.Duration, answer Aggregates,
) error {
	readings := answer[BucketMetric{device, at.Unix(), roomsensor.CO2}].Count // Every reading has this metric.
	want := map[string]string{
		"bucket_at": `"` + at.Format(time.RFC3339) + `"`, "bucket_end": `"` + at.Add(length).Format(time.RFC3339) + `"`,
		"expected": fmt.Sprint(int(length / roomsensor.BucketLength)), "present": fmt.Sprint(readings),
	}
	for name, text := range want {
		if string(item[name]) != text {
			return fmt.Errorf("%w: the %s of bucket %s is %s", errBody, name, at, item[name])
		}
	}
	for _, m := range roomsensor.Metrics {
		var got Statistics
		if err := json.Unmarshal(item[m.String()], &got); err != nil {
			return fmt.Errorf("reading the %s of bucket %s: %w", m, at, err)
		}
		if got != answer[BucketMetric{device, at.Unix(), m}] {
			return fmt.Errorf("%w: the %s of bucket %s is %+v", errBody, m, at, got)
		}
	}
	return nil
}
