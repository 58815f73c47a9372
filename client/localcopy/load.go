package localcopy

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"roomsensor/client"
	"roomsensor/client/export"
)

// maxWindow is the widest window of daily aggregates (A1.2) and of assignments (A18.1).
const maxWindow = 3660 * 24 * time.Hour

// windows divides a period into windows that the service allows.
func windows(from, to time.Time) iter.Seq2[time.Time, time.Time] {
	return func(yield func(from, to time.Time) bool) {
		for from.Before(to) {
			end := from.Add(maxWindow)
			if end.After(to) {
				end = to
			}
			if !yield(from, end) {
				return
			}
			from = end
		}
	}
}

// firstDay returns the start of the first day (UTC) with readings in a window, so that the first load has no empty
// months. Without readings it returns the current time.
func (c *copier) firstDay(ctx context.Context, from, to time.Time) (time.Time, error) {
	for at, end := range windows(from, to) {
		days, err := c.client.ExportAggregatesCSV(ctx, client.AggregateExportQuery{AggregateQuery: client.AggregateQuery{
			Window: client.Between(at, end), Interval: client.Daily, Metrics: []client.Metric{client.CO2PPM},
		}})
		if client.HasCode(err, client.CodeCSVTooLarge) { // There are so many readings that empty months do not matter.
			return at, nil
		}
		if err != nil {
			return at, fmt.Errorf("looking for the first reading: %w", err)
		}
		first, found, err := firstBucket(days)
		_ = days.Close() // The rest is not needed.
		switch {
		case err != nil:
			return at, err
		case found && first.Before(at):
			return at, nil
		case found:
			return first, nil
		}
	}
	return to.Add(-futureMargin), nil
}

// firstBucket returns the time of the first row of a CSV.
func firstBucket(in io.Reader) (at time.Time, found bool, err error) {
	for row, err := range client.ReadCSV(in) {
		return row.BucketAt, err == nil, err
	}
	return at, false, nil
}

// load downloads all readings of the window into files, one per month.
func (c *copier) load(ctx context.Context) error {
	dir := c.store.LoadDir()
	result, err := export.Run(ctx, c.client, export.Request{
		From: &c.state.LoadFrom, To: &c.state.To, ByMonth: true, IngestedAt: true, Format: export.CSV,
	}, export.Options{Output: dir, Overwrite: true, Parallel: c.options.Parallel, Progress: c.options.Load})
	if err != nil {
		return fmt.Errorf("loading the readings: %w", err)
	}
	s := c.state
	s.Phase, s.Files = Importing, make([]LoadedFile, len(result.Files))
	for i, f := range result.Files {
		s.Files[i] = LoadedFile{filepath.Base(f.Path), f.Rows}
	}
	return c.commit(ctx, Changes{}, s)
}

// importFiles writes the downloaded files into the store. Each file is removed once the state no longer names it.
func (c *copier) importFiles(ctx context.Context) error {
	dir := c.store.LoadDir()
	for all, done := len(c.state.Files), 0; done < all; done++ {
		c.report(Status{Phase: Importing, Files: all, FilesDone: done})
		file := c.state.Files[0]
		path := filepath.Join(dir, file.Name)
		if err := c.importFile(ctx, path, file.Rows); err != nil {
			return fmt.Errorf("importing %s: %w", path, err)
		}
		s := c.state
		s.Files = s.Files[1:]
		if err := c.commit(ctx, Changes{}, s); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing a file of the first load: %w", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the files of the first load: %w", err)
	}
	s := c.state
	s.Phase = Following
	return c.commit(ctx, Changes{}, s)
}

// importFile writes a file into the store. It returns an error if the file does not have the number of readings that
// the service counted.
func (c *copier) importFile(ctx context.Context, path string, want int64) error {
	file, err := os.Open(path) //nolint:gosec // The caller chooses the directory.
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows := int64(0)
	counted := func(yield func(client.DeviceReading, error) bool) {
		for row, err := range client.ReadCSV(file) {
			rows++
			if !yield(row, err) {
				return
			}
		}
	}
	if err := c.store.Import(ctx, counted); err != nil {
		return err
	}
	if rows != want {
		return fmt.Errorf("the file has %d readings, and the service counted %d. Remove the copy, and make a new one",
			rows, want)
	}
	c.imported += rows
	return nil
}
