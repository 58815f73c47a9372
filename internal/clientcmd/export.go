package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"roomsensor/client"
	"roomsensor/client/export"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
)

// Export has the commands that write and check files of readings.
type Export struct {
	Write exportCmd      `cmd:"" default:"withargs" help:"Export readings of any period into files, through the API."`
	Check exportCheckCmd `cmd:"" help:"Ask whether an exported file is still exact, and what changed."`
}

type exportCmd struct {
	config.Client
	listed
	tagged
	referenced
	From      *cli.Edge    `help:"Start of the period, a UTC time or date. --from or --last is required." implied:"none" placeholder:"TIME"`
	To        *cli.Edge    `help:"End of the period, which is not part of it." implied:"now" placeholder:"TIME"`
	Last      *cli.Period  `help:"Length of the period up to now, such as 24h, 90d or 730d." implied:"none" placeholder:"DURATION"`
	Metrics   []string     `help:"Only these metrics, separated by commas." placeholder:"METRIC"`
	Shape     string       `default:"long" enum:"long,wide" help:"Shape of a CSV: long has a row per reading, wide a row per time with columns for each device." placeholder:"SHAPE"`
	Columns   string       `default:"name" enum:"name,id" help:"Names of the columns of the wide shape: from the names or the ids of the devices." placeholder:"COLUMNS"`
	Include   []string     `help:"Columns to add to the long shape, separated by commas: ingested_at, assignment." placeholder:"COLUMN"`
	TimeZone  string       `help:"Add the column local_time, in the time zone with this IANA name, such as Europe/Berlin." implied:"none" name:"time-zone" placeholder:"ZONE"`
	Excel     client.Excel `default:"" enum:",true,comma" help:"Write a CSV for spreadsheets: true, or comma for a language with decimal commas." placeholder:"FORM"`
	Format    string       `default:"auto" enum:"auto,csv,parquet" help:"Format; auto follows the extension of the output, and is csv for a directory." placeholder:"FORMAT"`
	Output    string       `help:"File to write, or - for standard output; with --by-month, the directory." placeholder:"PATH" required:"" short:"o"`
	ByMonth   bool         `help:"Write one file per month (UTC)."`
	Overwrite bool         `help:"Replace existing files."`
	IfChanged bool         `help:"Replace the file, but only if the service would return another one. It prints what changed."`
	Restart   bool         `help:"Discard an interrupted export of the same output, and begin again."`
	Parallel  int          `default:"4" help:"Number of simultaneous requests, 1 to 8." placeholder:"N"`
}

// maxParallel is the number of exports that a service runs at once at least, of all keys (decision 32 f).
const maxParallel = 8

// standardOutput is the value of --output for standard output.
const standardOutput = "-"

// Help returns the part of --help about what it does.
func (*exportCmd) Help() string {
	return `The command divides the period into parts of at most 250,000 readings, downloads several at once, checks ` +
		`the number of readings of each, and joins them in order. The output appears under its name when it is ` +
		`complete. Run an interrupted export again with the same flags to continue it: its parts are in PATH.partial, ` +
		`or in PATH/.partial with --by-month. A restart of the service, a lost connection and the rate limit only ` +
		`delay it.

Parts are begun in order, the oldest first. A reading that arrives during the export is included if its part was not
read yet.`
}

// Run exports readings.
func (c *exportCmd) Run(ctx context.Context, t *cli.Terminal) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	if c.Parallel < 1 || c.Parallel > maxParallel {
		return cli.Usagef("--parallel must be a whole number from 1 to %d.", maxParallel)
	}
	api, shut, err := connect(t, c.Client)
	if err != nil {
		return err
	}
	defer shut()
	if request.Devices, err = c.findDevices(ctx, api); err != nil {
		return explain(ctx, c.Client, err)
	}
	if c.Output == standardOutput {
		return c.print(ctx, t, api, request)
	}
	if c.IfChanged {
		same, err := c.isExact(ctx, t, api, &request)
		if same || err != nil {
			return err
		}
		c.Overwrite = true
	}
	result, err := c.export(ctx, t, api, request, c.Output)
	if err != nil {
		return err
	}
	return t.Print(cli.Format{Output: "auto"}, result)
}

// export writes the export into files, and reports its progress.
func (c *exportCmd) export(
	ctx context.Context, t *cli.Terminal, api *client.Client, request export.Request, output string,
) (*export.Result, error) {
	show := &exportProgress{Progress: t.NewProgress("export"), began: time.Now()}
	result, err := export.Run(ctx, api, request, export.Options{
		Output: output, Overwrite: c.Overwrite, Restart: c.Restart, Parallel: c.Parallel, Progress: show.update,
	})
	show.End()
	if err != nil {
		return nil, c.explain(ctx, show, err)
	}
	return result, nil
}

// print writes the export to standard output, when it is complete.
func (c *exportCmd) print(ctx context.Context, t *cli.Terminal, api *client.Client, request export.Request) error {
	dir, err := os.MkdirTemp("", "roomsensor-export-")
	if err != nil {
		return fmt.Errorf("creating a directory for the export: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // Only an error leaves something in it.
	result, err := c.export(ctx, t, api, request, filepath.Join(dir, "readings.csv"))
	if err != nil {
		return err
	}
	file, err := os.Open(result.Files[0].Path)
	if err != nil {
		return fmt.Errorf("reading the export: %w", err)
	}
	defer func() { _ = file.Close() }()
	_ = os.RemoveAll(dir) // Now, because a reader that ends early ends this program at once.
	if _, err := io.Copy(t.Stdout, file); err != nil {
		return fmt.Errorf("writing the export: %w", err)
	}
	return nil
}

// request returns the request without its devices.
func (c *exportCmd) request() (export.Request, error) {
	r := export.Request{
		From: c.From.Optional(), To: c.To.Optional(), Last: cli.OrZero(c.Last), ByMonth: c.ByMonth, Format: c.format(),
		ExternalRef: c.ExternalRef, Metadata: c.Metadata, TimeZone: c.TimeZone, Excel: c.Excel,
		Wide: c.Shape == "wide", ColumnIDs: c.Shape == "wide" && c.Columns == "id",
	}
	for _, column := range c.Include {
		switch column {
		case "ingested_at":
			r.IngestedAt = r.Format != export.Parquet // It always has it.
		case "assignment":
			r.Assignment = true
		default:
			return r, cli.Usagef("--include must be ingested_at, assignment, or both separated by a comma.")
		}
	}
	if err := checkPeriod(c.From, c.To, c.Last); err != nil {
		return r, err
	}
	switch {
	case c.Output == standardOutput && (c.ByMonth || r.Format != export.CSV):
		return r, cli.Usagef("--output - writes one CSV to standard output. Omit --by-month and --format, or name a file.")
	case c.IfChanged && (c.ByMonth || c.Output == standardOutput || r.From == nil || r.To == nil):
		return r, cli.Usagef("--if-changed needs one file and a fixed period: give --from and --to, and omit --by-month.")
	case r.Last == 0 && r.From == nil:
		return r, cli.Usagef("Specify the period: give --from, or --last.")
	case r.ExternalRef != "" && (len(c.Devices) > 0 || r.Wide):
		return r, cli.Usagef("--external-ref cannot be combined with --devices or --shape wide. Omit one of them.")
	case r.Wide && len(c.Include) > 0:
		return r, cli.Usagef("--include cannot be combined with --shape wide. Omit one of them.")
	case !r.Wide && c.Columns == "id":
		return r, cli.Usagef("--columns id needs --shape wide.")
	case r.Format == "":
		return r, cli.Usagef("--output %s does not end in .csv or .parquet. Give such a name, or --format.", c.Output)
	case r.Format == export.Parquet && (r.Wide || r.Excel != ""):
		return r, cli.Usagef("Parquet has the long shape only. Omit --shape and --excel.")
	}
	var err error
	r.Metrics, err = metricNames(c.Metrics)
	return r, err
}

// format returns the format of the output, or nothing if it is not clear.
func (c *exportCmd) format() export.Format {
	extension := strings.ToLower(strings.TrimPrefix(filepath.Ext(c.Output), "."))
	switch {
	case c.Format != "auto":
		return export.Format(c.Format)
	case c.ByMonth, c.Output == standardOutput:
		return export.CSV
	case extension == "csv", extension == "parquet":
		return export.Format(extension)
	}
	return ""
}

// explain returns the error of an export as a person sees it.
func (c *exportCmd) explain(ctx context.Context, show *exportProgress, err error) error {
	if _, ok := errors.AsType[export.RequestError](err); ok {
		return refused(err)
	}
	kept := ""
	if show.last.Done > 0 && c.Output != standardOutput {
		kept = " " + show.kept()
	}
	if ctx.Err() != nil {
		return process.Refusef("Interrupted.%s", kept)
	}
	err = explain(ctx, c.Client, err)
	if kept != "" {
		return fmt.Errorf("%w.%s", err, kept)
	}
	return err
}

// refused returns the error of a request that was refused with the flags that change it, and any other error as it is.
func refused(err error) error {
	if refusal, ok := errors.AsType[export.RequestError](err); ok {
		return process.Refusef("%s.", optionFlags.Replace(refusal.Error()))
	}
	return err
}

// optionFlags replaces what the messages of an export call its options by the flags.
var optionFlags = strings.NewReplacer(
	"set Overwrite", "add --overwrite", "set Restart", "add --restart", "set ColumnIDs", "add --columns id")

// exportProgress shows the progress of an export.
type exportProgress struct {
	*cli.Progress
	began  time.Time
	before float64 // fraction that earlier runs did
	first  bool
	last   export.Status
}

// update shows a status.
func (p *exportProgress) update(s export.Status) {
	if !p.first {
		p.first, p.before = true, s.Fraction
		text := fmt.Sprintf("%s to %s", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339))
		if s.Resumed {
			text = fmt.Sprintf("continuing %s with %d of %d parts", text, s.Done, s.Parts)
		}
		p.Line(text)
	}
	p.last = s
	if s.Problem != nil {
		p.Line(fmt.Sprintf("trying again: %v", s.Problem))
	}
	p.Update(func() string {
		return fmt.Sprintf("%d of %d parts, %d readings, %.0f %%%s", s.Done, s.Parts, s.Rows, 100*s.Fraction,
			cli.Remaining(time.Since(p.began), p.before, s.Fraction))
	})
}

// kept says what an export that ended early leaves.
func (p *exportProgress) kept() string {
	return fmt.Sprintf("%d of %d parts are kept; run the same command again to continue.", p.last.Done, p.last.Parts)
}
