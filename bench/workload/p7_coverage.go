package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// CoverageWindow returns the window of P7: the last day of the history.
func (s *Suite) CoverageWindow() roomsensor.Window {
	return roomsensor.Window{From: s.Fleet.Until.Add(-day), To: s.Fleet.Until}
}

// coverage is an item of GET /coverage.
type coverage struct {
	coverageOfDevice

	Metrics map[string]int `json:"metrics"`
}

// coverageOfDevice are the members of an item that can be compared.
type coverageOfDevice struct {
	DeviceID   uuid.UUID         `json:"device_id"`
	Name       string            `json:"display_name"`
	Status     roomsensor.Status `json:"status"`
	Expected   int               `json:"expected"`
	Present    int               `json:"present"`
	Coverage   float64           `json:"coverage"`
	First      string            `json:"first_bucket_at"`
	Last       string            `json:"last_bucket_at"`
	LongestGap *struct{}         `json:"longest_gap"` // null, because no reading is missing
}

// CheckCoverage compares all pages of the coverage of P7 with the fleet, and returns the query that repeats them.
func (s *Suite) CheckCoverage(ctx context.Context) (*Query, error) {
	// The status is in the body. So it does not change during the rounds.
	if _, err := s.Pool.Exec(ctx, "UPDATE devices SET last_seen_at = now()"); err != nil {
		return nil, fmt.Errorf("setting last_seen_at: %w", err)
	}
	path := fmt.Sprintf("/coverage?limit=%d&%s", roomsensor.MaxPage, span(s.CoverageWindow()))
	checked, err := s.checkList(ctx, path, s.checkCoverage)
	if err != nil {
		return nil, err
	}
	return s.list([]*list{checked}), nil
}

// checkCoverage compares the pages, which list each device once, by id.
func (s *Suite) checkCoverage(pages [][]byte) error {
	var items []coverage
	for _, page := range pages {
		var more []coverage
		if err := json.Unmarshal(page, &more); err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		items = append(items, more...)
	}
	if len(items) != s.Fleet.Devices {
		return fmt.Errorf("%w: %d devices of %d", errBody, len(items), s.Fleet.Devices)
	}
	numbers := map[uuid.UUID]int{}
	for i := range s.Fleet.Devices {
		numbers[s.Fleet.DeviceID(i)] = i
	}
	var last uuid.UUID
	for i := range items {
		id := items[i].DeviceID
		want := s.coverage(numbers[id])
		if bytes.Compare(id[:], last[:]) <= 0 || items[i].coverageOfDevice != want.coverageOfDevice ||
			!maps.Equal(items[i].Metrics, want.Metrics) {
			return fmt.Errorf("%w: item %d is %+v, not %+v", errBody, i, items[i], want)
		}
		last = id
	}
	return nil
}

// coverage returns the item of a device.
func (s *Suite) coverage(i int) coverage {
	w, counts := s.CoverageWindow(), map[string]int{}
	for m, n := range s.ValueCounts(i) {
		counts[roomsensor.Metric(m).String()] = n
	}
	return coverage{coverageOfDevice{
		DeviceID: s.Fleet.DeviceID(i), Name: s.Fleet.Name(i), Status: roomsensor.Online,
		Expected: w.Buckets(), Present: w.Buckets(), Coverage: 1,
		First: w.From.Format(time.RFC3339), Last: w.To.Add(-roomsensor.BucketLength).Format(time.RFC3339),
	}, counts}
}

// ValueCounts returns how many values of each metric a device has in the window of P7.
func (s *Suite) ValueCounts(i int) (counts [roomsensor.MetricCount]int) {
	w := s.CoverageWindow()
	for at := w.From; at.Before(w.To); at = at.Add(roomsensor.BucketLength) {
		reading := s.Fleet.Reading(i, at)
		for _, m := range roomsensor.Metrics {
			if _, ok := reading.Values.Get(m); ok {
				counts[m]++
			}
		}
	}
	return counts
}
