package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	pageConnections = 4
	pageRows        = roomsensor.MaxPage
	// pageTargets are how many different pages are asked for: more than any cache of plans, few enough to check each.
	pageTargets = 256
	// Strides through devices and buckets, prime to their numbers, which pgbench can count as well.
	deviceStride = 7
	bucketStride = 7919
)

// target is one page of 1,000 rows.
type target struct {
	device int
	window roomsensor.Window
	hash   uint64
}

// targets are pages of the first devices, within the last so many buckets.
func (s *suite) targets(devices, buckets int) []*target {
	list := make([]*target, pageTargets)
	for i := range list {
		to := s.fleet.Until.Add(-time.Duration(i*bucketStride%(buckets-pageRows+1)) * roomsensor.BucketLength)
		list[i] = &target{
			device: i * deviceStride % devices,
			window: roomsensor.Window{From: to.Add(-pageRows * roomsensor.BucketLength), To: to},
		}
	}
	return list
}

func (t *target) path(s *suite) string {
	return "/devices/" + s.fleet.DeviceID(t.device).String() + "/readings?" + span(t.window)
}

func span(w roomsensor.Window) string {
	return "from=" + w.From.Format(time.RFC3339) + "&to=" + w.To.Format(time.RFC3339)
}

// page is W2: a page of 1,000 readings, against the statement behind it, both with the same pages in any order.
func (s *suite) page(ctx context.Context) error {
	buckets := s.fleet.Days * bucketsADay
	targets := s.targets(s.fleet.Deep, buckets)
	if err := s.checkPages(ctx, targets); err != nil {
		return err
	}
	get := func(ctx context.Context) (float64, error) { return s.pageRate(ctx, pageConnections, targets) }
	ours, theirs, err := s.contest(ctx, get, s.pgbench(s.pageStatement(buckets), pageConnections))
	if err != nil {
		return err
	}
	s.add(report.Row{
		ID: "W2", Workload: "page of 1,000 readings, 4 connections", Layout: s.layout, Unit: "/s", Ours: ours,
		Against: "pgbench: pageSQL", Bar: theirs, Reach: 0.85, Aim: 1,
	})
	return s.profileAPI(ctx, "w2", get)
}

const bucketsADay = int(24 * time.Hour / roomsensor.BucketLength)

// pageRate asks for pages at random and compares each with what was checked.
func (s *suite) pageRate(ctx context.Context, connections int, targets []*target) (float64, error) {
	return s.closed(ctx, connections, func(ctx context.Context, v *visitor, _ int) error {
		return s.getPage(ctx, v, targets[v.dice.IntN(len(targets))])
	})
}

func (s *suite) getPage(ctx context.Context, v *visitor, t *target) error {
	answer, err := v.get(ctx, t.path(s))
	if err == nil && answer.Hash != t.hash {
		return errDiffers
	}
	return err
}

func (s *suite) pageStatement(buckets int) *bar.Statement {
	choose := fmt.Sprintf("\\set i random(0, %d)\n\\set d :i * %d %% %d\n", pageTargets-1, deviceStride, s.fleet.Deep) +
		fmt.Sprintf("\\set back :i * %d %% %d\n", bucketStride, buckets-pageRows+1) +
		fmt.Sprintf("\\set t %d - :back * %d\n", s.fleet.Until.Unix(), bucketSeconds) +
		fmt.Sprintf("\\set f :t - %d\n", pageRows*bucketSeconds)
	// A page asks for one row more, to know whether there is another page.
	return &bar.Statement{
		Database: s.Database, Script: choose + fmt.Sprintf(pageSQL, s.fleet.DeviceIDSQL(":d"), pageRows+1),
		Values: map[string]string{"team": s.team.String()},
	}
}

const bucketSeconds = int(roomsensor.BucketLength / time.Second)

// checkPages asks for every page once, compares it with what the fleet measured, and remembers its hash.
func (s *suite) checkPages(ctx context.Context, targets []*target) error {
	for _, t := range targets {
		body, err := s.body(ctx, t.path(s))
		if err != nil {
			return err
		}
		if err := s.checkPage(t, body); err != nil {
			return fmt.Errorf("%s: %w", t.path(s), err)
		}
		digest, err := load.Digest(bytes.NewReader(body))
		if err != nil {
			return err
		}
		t.hash = digest.Hash
	}
	return nil
}

func (s *suite) checkPage(t *target, body []byte) error {
	var page struct {
		Data []map[string]any `json:"data"`
		Next *string          `json:"next_cursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("reading a page: %w", err)
	}
	if len(page.Data) != pageRows || page.Next != nil {
		return fmt.Errorf("%w: %d rows", errBody, len(page.Data))
	}
	for i, row := range page.Data {
		at := t.window.To.Add(-time.Duration(i+1) * roomsensor.BucketLength)
		want := s.fleet.Reading(t.device, at)
		if row["bucket_at"] != at.Format(time.RFC3339) || !equalValues(&want, row) {
			return fmt.Errorf("%w: row %d is %v", errBody, i, row)
		}
	}
	return nil
}

// equalValues compares as stored: in 32 bits.
func equalValues(want *roomsensor.Measurement, row map[string]any) bool {
	for _, m := range roomsensor.Metrics {
		x, present := want.Values.Get(m)
		got, ok := row[m.String()].(float64)
		if ok != present || float32(got) != x {
			return false
		}
	}
	return true
}
