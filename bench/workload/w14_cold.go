package workload

import (
	"context"
	"fmt"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

// coldPage is the target of the p99 of a page whose rows have to be read from disk, in seconds. It does not apply to
// readings in the order of arrival, each of which is on a different page of the disk.
const coldPage = 0.05

// coldSamples are seconds per round, cold and right afterwards.
type coldSamples struct {
	first, pages, export             report.Sample
	firstWarm, pagesWarm, exportWarm report.Sample
}

// cold is W14: pages and an export after the server was restarted and the caches of the kernel were dropped, compared
// with the same requests right afterwards.
func (s *Suite) cold(ctx context.Context) error {
	if reason := s.ColdObstacle(); reason != "" {
		s.Add(report.Row{
			ID: "W14", Workload: "first page and export after caches are dropped", Layout: s.Layout, Kind: report.Bound,
			Unit: "s", Note: skipped + reason,
		})
		return nil
	}
	pages := s.Pages(s.Fleet.Deep, s.Fleet.Days*BucketsPerDay)
	if err := s.CheckPages(ctx, pages); err != nil {
		return err
	}
	export := s.Exports()[1]
	if err := s.CheckExport(ctx, export); err != nil {
		return err
	}
	var samples coldSamples
	for range s.Rounds {
		if err := s.coldPages(ctx, pages, &samples); err != nil {
			return err
		}
		if err := s.coldExport(ctx, export, &samples); err != nil {
			return err
		}
	}
	s.addCold(&samples, len(pages), export)
	return nil
}

// skipped begins the note of a row without a result.
const skipped = "skipped: "

func (s *Suite) addCold(samples *coldSamples, pages int, x *Export) {
	target := coldPage
	if s.Layout == AsArrived {
		target = 0
	}
	row := report.Row{
		ID: "W14", Layout: s.Layout, Kind: report.Growth, Unit: "s", Against: "the same, warm",
		Workload: "first page of 1,000 readings after caches are dropped", Ours: samples.first, Baseline: samples.firstWarm,
	}
	s.Add(row)
	row.Workload = fmt.Sprintf("first export after caches are dropped, CSV %s, %d rows", x.Name, x.Rows())
	row.Ours, row.Baseline = samples.export, samples.exportWarm
	s.Add(row)
	row.Workload = fmt.Sprintf("p99 of %d different pages after caches are dropped", pages)
	row.Kind, row.Ours, row.Baseline, row.Target = report.Bound, samples.pages, samples.pagesWarm, target
	s.Add(row)
}

// dropCaches restarts the database server and the API with nothing in memory, and returns a client of the API.
func (s *Suite) dropCaches(ctx context.Context) (*client, error) {
	c := s.newClients(1)[0]
	if _, err := c.lease.Bearer(ctx); err != nil { // A key, before the caches are empty.
		return nil, err
	}
	if err := s.api.End(); err != nil {
		return nil, err
	}
	if err := s.RestartCold(ctx); err != nil {
		return nil, err
	}
	var err error
	s.api, err = s.Start(ctx, "api", nil, "api")
	if err == nil {
		c.base = s.api.URL() + "/v1"
	}
	return c, err
}

// coldPages measures the first page, and different pages of which each is requested for the first time.
func (s *Suite) coldPages(ctx context.Context, pages []*Page, to *coldSamples) error {
	c, err := s.dropCaches(ctx)
	if err != nil {
		return err
	}
	defer c.http.CloseIdle()
	all := func() (first, p99 float64, err error) {
		result, err := load.Each(ctx, 1, len(pages), func(ctx context.Context, _, k int) error {
			began := time.Now()
			err := s.getPage(ctx, c, pages[k])
			if k == 0 {
				first = time.Since(began).Seconds()
			}
			return err
		})
		if err != nil {
			return 0, 0, err
		}
		return first, result.Quantile(0.99).Seconds(), nil
	}
	first, p99, err := all()
	if err != nil {
		return err
	}
	to.first, to.pages = append(to.first, first), append(to.pages, p99)
	if first, p99, err = all(); err != nil {
		return err
	}
	to.firstWarm, to.pagesWarm = append(to.firstWarm, first), append(to.pagesWarm, p99)
	return nil
}

// coldExport measures an export of few devices.
func (s *Suite) coldExport(ctx context.Context, x *Export, to *coldSamples) error {
	c, err := s.dropCaches(ctx)
	if err != nil {
		return err
	}
	defer c.http.CloseIdle()
	read := timed(func(ctx context.Context) (load.Answer, error) { return c.get(ctx, x.path()) })
	took, err := read(ctx)
	if err != nil {
		return err
	}
	to.export = append(to.export, took)
	if took, err = read(ctx); err != nil {
		return err
	}
	to.exportWarm = append(to.exportWarm, took)
	return nil
}
