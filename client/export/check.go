package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"roomsensor/client"
)

// record is what is written beside an output file, as FILE.request.json: what the file was asked for, and what the
// service answered, so that Check can ask whether it would answer the same (A21.2).
type record struct {
	Version   int          `json:"version"`
	Team      uuid.UUID    `json:"team"`
	Request   Request      `json:"request"`
	StartedAt time.Time    `json:"started_at"`
	SHA256    string       `json:"sha256"` // of the file
	Parts     []recordPart `json:"parts"`  // by time
}

// recordPart is a response.
type recordPart struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Devices group     `json:"devices,omitempty"` // of the request; none if it named no devices
	SHA256  string    `json:"sha256"`
}

// recordVersion changes when a program could no longer check a file of an older one.
const recordVersion = 1

// RecordPath returns the path of what is written beside an output file.
func RecordPath(file string) string { return file + ".request.json" }

// writeRecord writes the record of a complete output file. It precedes the file, whose old content does not have its
// hash.
func (r *runner) writeRecord(j *joined) error {
	sum, err := j.sum()
	if err != nil {
		return err
	}
	rec := record{
		Version: recordVersion, Team: r.plan.Team, Request: r.plan.Request, StartedAt: r.plan.StartedAt, SHA256: sum,
	}
	for _, w := range r.state.ofFile(j.File) {
		for group, p := range w.parts {
			rec.Parts = append(rec.Parts, recordPart{w.From, w.To, r.plan.Groups[group], hex.EncodeToString(p.Sum)})
		}
	}
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	path := RecordPath(r.output.path(j.File))
	//nolint:gosec // Like the file, which others may read.
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return nil
}

// readRecord reads the record of a file.
func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(RecordPath(path))
	if err != nil {
		return nil, fmt.Errorf("reading the request of a file: %w", err)
	}
	rec := &record{}
	if err := json.Unmarshal(text, rec); err != nil || rec.Version != recordVersion || len(rec.Parts) == 0 {
		return nil, RequestError(RecordPath(path) + " is not one that this version of the program wrote. " +
			"Export the file again")
	}
	return rec, nil
}

// IsOf reports whether an output file was written for a request, and no run that writes it again is unfinished: it may
// have written the record already.
func IsOf(path string, request *Request) (bool, error) {
	parts := (&Options{Output: path}).workDir(request.ByMonth)
	if _, err := os.Stat(filepath.Join(parts, journalName)); err == nil {
		return false, nil
	}
	rec, err := readRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && len(rec.Request.differs(request)) == 0, err
}

// Comparison is what Check found.
type Comparison struct {
	File    string    `json:"file"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Exact   bool      `json:"exact"`             // the service would still return the file
	Changed []Span    `json:"changed,omitempty"` // the parts that it would return with other bytes
	Since   time.Time `json:"since"`             // when the export began, or the 30 days of the change feed
	Days    []Day     `json:"days,omitempty"`    // which readings in these parts were stored since then
}

// Span is a part of a file.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Day is a day (UTC) of a device with readings that were stored later.
type Day struct {
	DeviceID uuid.UUID `json:"device_id"`
	Day      string    `json:"day"` // such as 2026-11-20
	Readings int       `json:"readings"`
}

const (
	// feedReach is how far the change feed reaches back (A5.1), less what a request may take.
	feedReach = 30*24*time.Hour - time.Minute
	// feedDelay is the longest time that a change takes to appear in the feed (A5.4, A5.9).
	feedDelay = 5 * time.Second
)

// Check asks the service whether it would still return the bytes of a file that Run wrote, and which readings changed
// (A21.2). A file that was changed after it was written is a RequestError.
func Check(ctx context.Context, c *client.Client, path string) (*Comparison, error) {
	rec, err := readRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, RequestError("There is no " + RecordPath(path) + ". Export the file again: " +
			"an export writes it beside the file")
	}
	if err != nil {
		return nil, err
	}
	if err := rec.checkFile(path); err != nil {
		return nil, err
	}
	key, err := c.Team(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the team of the key: %w", err)
	case key.Team.ID != rec.Team:
		return nil, RequestError(path + " is an export of another team. Use a key of that team")
	}
	result := &Comparison{
		File: path, From: rec.Parts[0].From, To: rec.Parts[len(rec.Parts)-1].To, Since: rec.StartedAt,
	}
	if result.Changed, err = rec.changed(ctx, c); err != nil {
		return nil, err
	}
	if result.Exact = len(result.Changed) == 0; result.Exact {
		return result, nil
	}
	if earliest := time.Now().Add(-feedReach).UTC().Truncate(time.Second); result.Since.Before(earliest) {
		result.Since = earliest
	}
	if result.Days, err = rec.changedDays(ctx, c, result); err != nil || len(result.Days) > 0 {
		return result, err
	}
	if err := wait(ctx, feedDelay); err != nil {
		return nil, err
	}
	result.Days, err = rec.changedDays(ctx, c, result)
	return result, err
}

// checkFile returns an error if a file is not the one of the record.
func (rec *record) checkFile(path string) error {
	file, err := os.Open(path) //nolint:gosec // The caller chooses it.
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != rec.SHA256 {
		return RequestError(path + " was changed after it was exported. Export it again")
	}
	return nil
}

// changed returns the parts whose bytes changed.
func (rec *record) changed(ctx context.Context, c *client.Client) (spans []Span, err error) {
	same := make([]bool, len(rec.Parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(defaultParallel)
	for i, p := range rec.Parts {
		group.Go(func() (err error) {
			same[i], err = c.ReadingsUnchanged(ctx, rec.Request.query(p.From, p.To, p.Devices),
				rec.Request.Format == Parquet, p.SHA256)
			if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Code == client.CodeCSVTooLarge {
				err = nil // It has more readings now.
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("comparing with the service: %w", err)
	}
	for i, p := range rec.Parts {
		if span := (Span{p.From, p.To}); !same[i] && !slices.Contains(spans, span) {
			spans = append(spans, span)
		}
	}
	return spans, nil
}

// changedDays returns the days of devices with readings in the changed parts that the change feed has since a time.
func (rec *record) changedDays(ctx context.Context, c *client.Client, result *Comparison) ([]Day, error) {
	q := client.ChangeQuery{
		Since: result.Since, UntilCaughtUp: true, Metadata: rec.Request.Metadata, ExternalRef: rec.Request.ExternalRef,
	}
	if len(rec.Request.Devices) <= maxNamed {
		q.Devices = rec.Request.Devices
	}
	counts := map[Day]int{}
	for page, err := range c.Follow(ctx, q, "") {
		if err != nil {
			return nil, fmt.Errorf("reading the change feed: %w", err)
		}
		for i := range page.Readings {
			reading := &page.Readings[i]
			if result.hasChanged(reading.BucketAt) && !reading.IngestedAt.Before(result.Since) { // Since has a margin.
				counts[Day{DeviceID: reading.DeviceID, Day: reading.BucketAt.UTC().Format(time.DateOnly)}]++
			}
		}
	}
	days := make([]Day, 0, len(counts))
	for day, n := range counts {
		day.Readings = n
		days = append(days, day)
	}
	slices.SortFunc(days, func(a, b Day) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), slices.Compare(a.DeviceID[:], b.DeviceID[:]))
	})
	return days, nil
}

// hasChanged reports whether a time is in a part that changed.
func (result *Comparison) hasChanged(at time.Time) bool {
	return slices.ContainsFunc(result.Changed, func(s Span) bool { return !at.Before(s.From) && at.Before(s.To) })
}
