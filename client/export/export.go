package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"roomsensor/client"
	"roomsensor/client/internal/filelock"
)

// Format is the format of the output.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Request says which readings an export has, and how they are written. Of the window, either Last or From is required.
type Request struct {
	From        *time.Time        `json:"from,omitempty"`
	To          *time.Time        `json:"to,omitempty"`           // nil means now, when the export begins
	Last        time.Duration     `json:"last,omitempty"`         // the time up to now, in place of From and To
	Devices     []uuid.UUID       `json:"devices,omitempty"`      // none means all
	Metadata    map[string]string `json:"metadata,omitempty"`     // tags that a device must have
	ExternalRef string            `json:"external_ref,omitempty"` // only assignments with it, in their time; no Devices
	Metrics     []client.Metric   `json:"metrics,omitempty"`      // none means all
	Wide        bool              `json:"wide,omitempty"`         // CSV only: one row per bucket, columns per device
	ColumnIDs   bool              `json:"column_ids,omitempty"`   // wide shape: name the columns after the ids of devices
	IngestedAt  bool              `json:"ingested_at,omitzero"`   // CSV, long shape: add the column ingested_at
	Assignment  bool              `json:"assignment,omitzero"`    // long shape: add the columns of the assignment
	TimeZone    string            `json:"time_zone,omitzero"`     // IANA name; adds the column local_time
	Excel       client.Excel      `json:"excel,omitzero"`         // CSV only: for spreadsheets
	Format      Format            `json:"format"`
	ByMonth     bool              `json:"by_month,omitempty"` // one file per month (UTC)
}

// Earliest is the time before which the service stores no reading (decision 41 a).
var Earliest = time.Date(2015, time.January, 1, 0, 0, 0, 0, time.UTC)

const (
	// defaultParallel is how many exports of a key the service runs at once at least (decision 32 f).
	defaultParallel = 4
	// defaultPatience ends an export after this time in which no part succeeded. It is longer than any Retry-After of the
	// rate limit (decision 25 b) and than a restart of the service.
	defaultPatience = 15 * time.Minute

	lockName = "lock"
)

// Options say where an export is written, and how.
type Options struct {
	// Output is the path of the file, or of the directory if ByMonth. Until the export is complete, its parts are in the
	// directory Output.partial; for a directory in Output/.partial.
	Output    string
	Overwrite bool          // replace existing files
	Restart   bool          // discard an interrupted export of the same output
	Parallel  int           // number of simultaneous requests; 0 means 4
	Patience  time.Duration // how long to retry while nothing succeeds; 0 means 15 minutes
	Progress  func(Status)  // called after each change, not concurrently; may be nil
	Now       func() time.Time
}

// Status is the progress of an export.
type Status struct {
	Resumed     bool
	From, To    time.Time
	Parts, Done int
	Rows        int64
	Fraction    float64 // of the window, 0 to 1
	Problem     error   // why the last attempt failed, which is repeated; nil after a success
}

// Result describes the files of a complete export.
type Result struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Rows    int64     `json:"rows"`
	Resumed bool      `json:"resumed"`
	Files   []File    `json:"files"`
}

// File is one output file.
type File struct {
	Path   string `json:"path"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// A RequestError is a request or option that an export refuses, as a full sentence without its final period.
type RequestError string

func (e RequestError) Error() string { return string(e) }

// Run writes an export. If it returns an error or the process ends, what was downloaded stays, and the next Run with
// the same request and output continues.
func Run(ctx context.Context, c *client.Client, request Request, options Options) (*Result, error) {
	if err := request.validate(); err != nil {
		return nil, err
	}
	options.Parallel = cmp.Or(options.Parallel, defaultParallel)
	options.Patience = cmp.Or(options.Patience, defaultPatience)
	if options.Now == nil {
		options.Now = time.Now
	}
	dir := options.workDir(request.ByMonth)
	if err := options.makeDirs(request.ByMonth, dir); err != nil {
		return nil, err
	}
	unlock, err := filelock.Try(filepath.Join(dir, lockName))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, RequestError("Another export writes the same output. Wait until it ends")
	}
	if err != nil {
		return nil, fmt.Errorf("locking the export: %w", err)
	}
	defer unlock()
	r, err := open(ctx, c, request, options, dir)
	if err != nil {
		if _, failed := os.Stat(filepath.Join(dir, journalName)); errors.Is(failed, fs.ErrNotExist) {
			_ = os.RemoveAll(dir) // Nothing was downloaded.
		}
		return nil, err
	}
	err = errors.Join(r.run(ctx), r.journal.close())
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("removing the parts of the export: %w", err)
	}
	return r.result(), nil
}

// workDir returns the directory of the parts. It is on the same file system as the output, so that a rename suffices.
func (o *Options) workDir(byMonth bool) string {
	if byMonth {
		return filepath.Join(o.Output, ".partial")
	}
	return filepath.Clean(o.Output) + ".partial"
}

// makeDirs makes the directory of the parts and, with byMonth, that of the output. The directory around the output must
// exist: without it, the path has a typing error.
func (o *Options) makeDirs(byMonth bool, work string) error {
	dirs := []string{work}
	if byMonth {
		dirs = []string{o.Output, work}
	}
	for _, dir := range dirs {
		err := os.Mkdir(dir, 0o755) //nolint:gosec // Like the directories that other programs make.
		if errors.Is(err, fs.ErrNotExist) {
			return RequestError(fmt.Sprintf("There is no directory %s. Create it, or choose another output",
				filepath.Dir(filepath.Clean(dir))))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating the directory of the export: %w", err)
		}
	}
	return nil
}

func (r *Request) validate() error {
	switch {
	case r.Last < 0 || r.Last == 0 && r.From == nil:
		return RequestError("An export needs a window: give its start, or how long it reaches back")
	case r.Last > 0 && (r.From != nil || r.To != nil):
		return RequestError("Give either the length of the window or its start and end, not both")
	case r.From != nil && r.To != nil && !r.From.Before(*r.To):
		return RequestError("The end of the window must be later than its start")
	case r.Format != CSV && r.Format != Parquet:
		return RequestError("The format must be csv or parquet")
	case r.Format == Parquet && (r.Wide || r.ColumnIDs || r.IngestedAt || r.Excel != ""):
		return RequestError("Parquet has the long shape only, always with ingested_at")
	case r.Wide && (r.IngestedAt || r.Assignment):
		return RequestError("The wide shape has neither ingested_at nor the assignment")
	case r.ExternalRef != "" && (len(r.Devices) > 0 || r.Wide):
		return RequestError("An external_ref selects the devices, which change with time: " +
			"it cannot be combined with devices or the wide shape")
	case r.ColumnIDs && !r.Wide:
		return RequestError("The names of columns can be chosen in the wide shape only")
	}
	return nil
}

// window resolves the window of a new export, without the time before Earliest.
func (r *Request) window(now time.Time) (from, to time.Time, err error) {
	to = now.UTC().Truncate(time.Second)
	from = to.Add(-r.Last)
	if r.From != nil {
		from = r.From.UTC()
	}
	if r.To != nil {
		to = r.To.UTC()
	}
	if from.Before(Earliest) {
		from = Earliest
	}
	switch {
	case to.Before(Earliest):
		return from, to, RequestError("The window ends before 2015, and the service has no readings from before 2015")
	case !from.Before(to):
		return from, to, RequestError("The start of the window is in the future")
	}
	return from, to, nil
}

// differs names the fields in which two requests differ.
func (r *Request) differs(o *Request) (fields []string) {
	same := func(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
	for _, field := range []struct {
		name string
		same bool
	}{
		{"from", same(r.From, o.From)},
		{"to", same(r.To, o.To)},
		{"last", r.Last == o.Last},
		{"devices", slices.EqualFunc(groupDevices(r.Devices), groupDevices(o.Devices), slices.Equal)},
		{"metadata", fmt.Sprint(r.Metadata) == fmt.Sprint(o.Metadata)}, // Maps print sorted by key.
		{"external_ref", r.ExternalRef == o.ExternalRef},
		{"metrics", fmt.Sprint(r.Metrics) == fmt.Sprint(o.Metrics)},
		{"shape", r.Wide == o.Wide},
		{"columns", r.ColumnIDs == o.ColumnIDs},
		{"ingested_at", r.IngestedAt == o.IngestedAt},
		{"assignment", r.Assignment == o.Assignment},
		{"time_zone", r.TimeZone == o.TimeZone},
		{"excel", r.Excel == o.Excel},
		{"format", r.Format == o.Format},
	} {
		if !field.same {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// runner is one run of an export.
type runner struct {
	client  *client.Client
	options Options
	dir     string
	plan    *plan
	journal *journal
	state   *state
	output  *output
	resumed bool
}

// open continues the interrupted export in a directory, or begins one.
func open(ctx context.Context, c *client.Client, request Request, options Options, dir string) (*runner, error) {
	r := &runner{client: c, options: options, dir: dir}
	key, err := c.Team(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the team of the key: %w", err)
	}
	team := key.Team.ID
	var entries []entry
	if options.Restart {
		err = discard(dir)
	} else {
		r.journal, r.plan, entries, err = openJournal(dir)
	}
	switch {
	case err == nil && r.plan != nil:
		r.resumed = true
		if err := r.checkSame(&request, team); err != nil {
			return nil, errors.Join(err, r.journal.close())
		}
	case err == nil, errors.Is(err, fs.ErrNotExist):
		if err := r.begin(ctx, request, team); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w. Restart the export to discard what it has downloaded", err)
	}
	r.state = newState(r.plan, entries)
	r.output = newOutput(r.plan, &options, dir)
	if err := r.output.restore(r.state); err != nil {
		return nil, errors.Join(err, r.journal.close())
	}
	return r, nil
}

// checkSame returns an error if an interrupted export is not the one that is asked for.
func (r *runner) checkSame(request *Request, team uuid.UUID) error {
	began := r.plan.StartedAt.Format(time.RFC3339)
	switch {
	case r.plan.Version != journalVersion:
		return RequestError(r.dir + " has an interrupted export of another version of this program. " +
			"To discard it, set Restart")
	case r.plan.Team != team:
		return RequestError(fmt.Sprintf("%s has an interrupted export of another team, which began at %s. "+
			"Use the key of that team, or set Restart to discard it", r.dir, began))
	}
	if fields := r.plan.Request.differs(request); len(fields) > 0 {
		return RequestError(fmt.Sprintf("%s has an interrupted export, which began at %s with another value of %s. "+
			"Repeat that request, or set Restart to discard it", r.dir, began, strings.Join(fields, ", ")))
	}
	return nil
}

// discard removes what an interrupted export downloaded.
func discard(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("discarding an export: %w", err)
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("discarding an export: %w", err)
		}
	}
	return nil
}

// begin plans a new export and writes its journal.
func (r *runner) begin(ctx context.Context, request Request, team uuid.UUID) error {
	if err := discard(r.dir); err != nil { // Parts without a journal.
		return err
	}
	now := r.options.Now()
	p := &plan{Version: journalVersion, Request: request, Team: team, StartedAt: now.UTC()}
	var err error
	if p.From, p.To, err = request.window(now); err != nil {
		return err
	}
	if err := r.chooseDevices(ctx, p); err != nil {
		return err
	}
	p.Segments = planSegments(p.From, p.To, p.Devices, len(p.Groups), request.ByMonth)
	r.plan = p
	if err := newOutput(p, &r.options, r.dir).checkAbsent(); err != nil {
		return err
	}
	r.journal, err = createJournal(r.dir, p)
	return err
}

// manyDevices is the number of devices whose readings of a single bucket exceed the limit, so that requests must name
// devices.
const manyDevices = maxRows

// chooseDevices sets the devices of the requests.
func (r *runner) chooseDevices(ctx context.Context, p *plan) error {
	request := &p.Request
	if request.ExternalRef != "" {
		return r.countDevices(ctx, p)
	}
	ids := request.Devices
	if len(ids) == 0 {
		for device, err := range r.client.Devices(ctx, client.DeviceQuery{Metadata: request.Metadata}) {
			if err != nil {
				return fmt.Errorf("listing the devices: %w", err)
			}
			ids = append(ids, device.DeviceID)
		}
	}
	p.All = len(request.Devices) == 0 && len(ids) < manyDevices
	switch {
	case len(ids) == 0 && len(request.Metadata) > 0:
		return RequestError("No device of the team has these tags. Name devices that are retired by their ids")
	case p.All:
		p.Devices, p.Groups = len(ids), []group{nil}
		return nil
	}
	for _, g := range groupDevices(ids) {
		p.Groups = append(p.Groups, g)
		p.Devices = max(p.Devices, len(g))
	}
	if request.Wide && len(p.Groups) > 1 {
		return RequestError(fmt.Sprintf("The wide shape takes at most %d devices, and %d are selected. "+
			"Select fewer, or use the long shape", maxNamed, len(ids)))
	}
	return nil
}

// countDevices counts the devices of the assignments with a reference, which the requests name instead of devices.
func (r *runner) countDevices(ctx context.Context, p *plan) error {
	held := map[uuid.UUID]bool{}
	for assignment, err := range r.client.TeamAssignments(ctx, client.AssignmentQuery{
		Window: client.Between(p.From, p.To), ExternalRef: p.Request.ExternalRef, Metadata: p.Request.Metadata,
	}) {
		if err != nil {
			return fmt.Errorf("listing the assignments: %w", err)
		}
		held[assignment.DeviceID] = true
	}
	if len(held) == 0 {
		return RequestError("No assignment in the period has this external_ref")
	}
	p.All, p.Devices, p.Groups = true, len(held), []group{nil}
	return nil
}

// run downloads and joins everything that is missing.
func (r *runner) run(ctx context.Context) error {
	r.report(nil)
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, r.state.wake)()
	for range r.options.Parallel {
		group.Go(func() error { return r.download(ctx) })
	}
	group.Go(func() error { return r.join(ctx) })
	return group.Wait() //nolint:wrapcheck // Both wrap their errors.
}

// report calls Progress.
func (r *runner) report(problem error) {
	if r.options.Progress == nil {
		return
	}
	r.state.status(func(s Status) {
		s.Resumed, s.Problem = r.resumed, problem
		r.options.Progress(s)
	})
}

func (r *runner) result() *Result {
	result := &Result{From: r.plan.From, To: r.plan.To, Resumed: r.resumed, Files: r.output.files()}
	for _, f := range result.Files {
		result.Rows += f.Rows
	}
	return result
}
