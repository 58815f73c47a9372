package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"roomsensor/bench/baseline"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	// PageConnections is the number of connections of W2.
	PageConnections = 4
	pageRows        = roomsensor.MaxPage
	// The strides through devices and buckets are prime, so that all are used. pgbench computes them too.
	deviceStride = 7
	bucketStride = 7919
)

// pageSQL selects a page of a device's readings; %[1]s is the device, %[2]d the rows.
const pageSQL = `
SELECT r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM readings r
WHERE r.device_id = %[1]s
  AND EXISTS (SELECT FROM devices d WHERE d.id = %[1]s AND d.team_id = :team::uuid)
  AND r.bucket_at >= to_timestamp(:f) AND r.bucket_at < to_timestamp(:t)
ORDER BY r.bucket_at DESC
LIMIT %[2]d;`

// Page is a page of 1,000 rows.
type Page struct {
	Device int
	Window roomsensor.Window
	hash   uint64
}

// Pages returns pages of the first devices within the last buckets.
func (s *Suite) Pages(devices, buckets int) []*Page {
	list := make([]*Page, s.PageCount)
	for i := range list {
		to := s.Fleet.Until.Add(-time.Duration(i*bucketStride%(buckets-pageRows+1)) * roomsensor.BucketLength)
		list[i] = &Page{
			Device: i * deviceStride % devices,
			Window: roomsensor.Window{From: to.Add(-pageRows * roomsensor.BucketLength), To: to},
		}
	}
	return list
}

func (p *Page) path(s *Suite) string {
	return "/devices/" + s.Fleet.DeviceID(p.Device).String() + "/readings?" + span(p.Window)
}

func span(w roomsensor.Window) string {
	return "from=" + w.From.Format(time.RFC3339) + "&to=" + w.To.Format(time.RFC3339)
}

// page is W2: a page of 1,000 readings, compared with its statement. Both sides choose the same pages at random.
func (s *Suite) page(ctx context.Context) error {
	buckets := s.Fleet.Days * BucketsPerDay
	pages := s.Pages(s.Fleet.Deep, buckets)
	if err := s.CheckPages(ctx, pages); err != nil {
		return err
	}
	get := func(ctx context.Context) (float64, error) { return s.PageRate(ctx, pages) }
	ours, theirs, err := s.Compare(ctx, get, s.pgbench(s.pageStatement(buckets), PageConnections))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W2", Workload: "page of 1,000 readings, 4 connections", Layout: s.Layout, Unit: "/s", Ours: ours,
		Against: "pgbench: pageSQL", Baseline: theirs, Minimum: 0.85, Target: 1,
	})
	return nil
}

// BucketsPerDay is the number of readings of a device per day.
const BucketsPerDay = int(24 * time.Hour / roomsensor.BucketLength)

// PageRate requests random pages and compares each with the checked one. It returns the pages per second.
func (s *Suite) PageRate(ctx context.Context, pages []*Page) (float64, error) {
	return s.closedRate(ctx, PageConnections, func(ctx context.Context, c *client, _ int) error {
		return s.getPage(ctx, c, pages[c.rng.IntN(len(pages))])
	})
}

func (s *Suite) getPage(ctx context.Context, c *client, p *Page) error {
	answer, err := c.get(ctx, p.path(s))
	if err == nil && answer.Hash != p.hash {
		return errDiffers
	}
	return err
}

func (s *Suite) pageStatement(buckets int) *baseline.Statement {
	choose := fmt.Sprintf("\\set i random(0, %d)\n\\set d :i * %d %% %d\n", s.PageCount-1, deviceStride, s.Fleet.Deep) +
		fmt.Sprintf("\\set back :i * %d %% %d\n", bucketStride, buckets-pageRows+1) +
		fmt.Sprintf("\\set t %d - :back * %d\n", s.Fleet.Until.Unix(), bucketSeconds) +
		fmt.Sprintf("\\set f :t - %d\n", pageRows*bucketSeconds)
	// The service selects one row more, to know whether there is a next page.
	return &baseline.Statement{
		Database: s.Database, Script: choose + fmt.Sprintf(pageSQL, s.Fleet.DeviceIDSQL(":d"), pageRows+1),
		Values: map[string]string{"team": s.team.String()},
	}
}

const bucketSeconds = int(roomsensor.BucketLength / time.Second)

// CheckPages requests every page once, compares it with the fleet, and keeps its hash.
func (s *Suite) CheckPages(ctx context.Context, pages []*Page) error {
	for _, p := range pages {
		body, err := s.body(ctx, p.path(s))
		if err != nil {
			return err
		}
		if err := s.checkPage(p, body); err != nil {
			return fmt.Errorf("%s: %w", p.path(s), err)
		}
		digest, err := load.Digest(bytes.NewReader(body))
		if err != nil {
			return err
		}
		p.hash = digest.Hash
	}
	return nil
}

func (s *Suite) checkPage(p *Page, text []byte) error {
	var body struct {
		Data []map[string]any `json:"data"`
		Next *string          `json:"next_cursor"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("reading a page: %w", err)
	}
	if len(body.Data) != pageRows || body.Next != nil {
		return fmt.Errorf("%w: %d rows", errBody, len(body.Data))
	}
	for i, row := range body.Data {
		at := p.Window.To.Add(-time.Duration(i+1) * roomsensor.BucketLength)
		want := s.Fleet.Reading(p.Device, at)
		if row["bucket_at"] != at.Format(time.RFC3339) || !equalValues(&want, row) {
			return fmt.Errorf("%w: row %d is %v", errBody, i, row)
		}
	}
	return nil
}

// equalValues compares values as they are stored, with 32 bits.
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
