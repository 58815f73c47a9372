package clientcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/csvimport"
	"roomsensor/internal/process"
)

// importer reads files twice: to check them, and to send their readings. It embeds the progress of both.
type importer struct {
	*cli.Progress
	began   time.Time // of this pass
	options *csvimport.Options
	files   []importFile
	size    int64 // bytes of all files
	read    int64 // bytes of the files that were read in this pass

	summary csvimport.Summary
	first   []badLine // never nil
	skipped *os.File  // where bad lines go; nil without --skip-bad
	refused int       // units that cannot be stored
	sent    int       // readings
}

type importFile struct {
	*os.File
	name string
	size int64
}

// badLine is a line that cannot be read.
type badLine struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// importResult is what files contain, and what of it was sent.
type importResult struct {
	Readings           int              `json:"readings"`
	Sent               int              `json:"sent"`
	LinesWithoutValues int              `json:"lines_without_values"`
	BadLines           int              `json:"bad_lines"`
	From               *time.Time       `json:"from"` // first measurement
	To                 *time.Time       `json:"to"`   // last measurement
	Units              []csvimport.Unit `json:"units"`
	FirstBadLines      []badLine        `json:"first_bad_lines"`
}

// open opens all files, and that for bad lines. Those that can be read only once become temporary files.
func (i *importer) open(names []string, stdin io.Reader, skipped string) error {
	for _, name := range names {
		file, err := openTwice(name, stdin)
		if err != nil {
			return err
		}
		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		i.files, i.size = append(i.files, importFile{file, name, info.Size()}), i.size+info.Size()
		if written, err := os.Stat(skipped); err == nil && os.SameFile(written, info) {
			return cli.Usagef("--skip-bad %s is one of the files. Give another name.", skipped)
		}
	}
	if skipped == "" {
		return nil
	}
	var err error
	if i.skipped, err = os.Create(skipped); err != nil { //nolint:gosec // The person names it.
		return cli.Usagef("--skip-bad cannot be written: %v.", err)
	}
	return nil
}

// openTwice opens a file that can be read from its start again.
func openTwice(name string, stdin io.Reader) (*os.File, error) {
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // The person names it.
		if err != nil {
			return nil, cli.Usagef("The file cannot be read: %v.", err)
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
		defer func() { _ = file.Close() }()
		stdin = file
	}
	file, err := os.CreateTemp("", "roomsensor-import-")
	if err == nil {
		_ = os.Remove(file.Name()) // It exists until it is closed.
		_, err = io.Copy(file, stdin)
	}
	if err != nil {
		return nil, process.Refusef("%s can be read only once, and cannot be copied to %s: %v. Save it to a file first.",
			name, os.TempDir(), err)
	}
	return file, nil
}

// close closes all files.
func (i *importer) close() {
	i.End()
	for _, file := range i.files {
		_ = file.Close()
	}
	if i.skipped != nil {
		_ = i.skipped.Close()
	}
}

// lineFunc is called with a line of a file.
type lineFunc func(name string, f *csvimport.File, l *csvimport.Line) error

// each calls do with every line of all files.
func (i *importer) each(ctx context.Context, doing string, do lineFunc) error {
	i.began, i.read = time.Now(), 0
	for _, in := range i.files {
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("reading %s: %w", in.name, err)
		}
		f, err := csvimport.Open(in, i.options)
		if err != nil {
			return process.Refusef("%s: %v.", in.name, err)
		}
		if err := i.eachOf(ctx, doing, in, f, do); err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) eachOf(ctx context.Context, doing string, in importFile, f *csvimport.File, do lineFunc) error {
	for n := 1; ; n++ {
		l, err := f.Next()
		switch {
		case errors.Is(err, io.EOF):
			i.read += in.size
			return nil
		case err != nil:
			return process.Refusef("%s: %v.", in.name, err)
		}
		if err := do(in.name, f, l); err != nil {
			return err
		}
		if n%1000 == 0 { // A clock for each line would cost more than the line.
			if ctx.Err() != nil {
				return ctx.Err()
			}
			i.Update(func() string {
				at, _ := in.Seek(0, io.SeekCurrent)
				fraction := float64(i.read+at) / float64(max(i.size, 1))
				return fmt.Sprintf("%s, %.0f %%%s", doing, 100*fraction, cli.Remaining(time.Since(i.began), 0, fraction))
			})
		}
	}
}

// check reads all lines.
func (i *importer) check(ctx context.Context) error {
	bad := bufio.NewWriter(io.Discard)
	if i.skipped != nil {
		bad.Reset(i.skipped)
	}
	var last *csvimport.File
	err := i.each(ctx, "checking", func(name string, f *csvimport.File, l *csvimport.Line) error {
		if l.Problem != "" {
			if len(i.first) < maxShown {
				i.first = append(i.first, badLine{name, l.Number, l.Problem})
				i.Line(fmt.Sprintf("%s, line %d %s", name, l.Number, l.Problem))
			}
			if f != last {
				_, _ = fmt.Fprintf(bad, "%s\n", f.Header)
				last = f
			}
			_, _ = fmt.Fprintf(bad, "%s\n", l.Text)
		}
		return i.summary.Add(l)
	})
	if err == nil {
		if err = bad.Flush(); err != nil { // It returns the first error.
			err = fmt.Errorf("writing bad lines: %w", err)
		}
	}
	r := i.result()
	if err == nil && r.From != nil && r.To.Sub(*r.From) > longHistory {
		i.Line("these are more than 120 weeks. Most services store at most 120 weeks of old readings of a team per day; " +
			"what is more becomes rejects too_many_chunks, which your operator can replay at once")
	}
	return err
}

// tryUnits asks the receiver whether the units are registered and installed.
func (i *importer) tryUnits(ctx context.Context, receiver *client.Receiver) error {
	for units := range slices.Chunk(i.summary.Units(), trialUnits) {
		var lines []byte
		for u := range units {
			lines = units[u].AppendTrial(lines)
		}
		report, err := receiver.TryUpload(ctx, lines)
		if err != nil {
			return err
		}
		last := 0
		for _, reject := range report.Rejects {
			if reject.Line == last {
				continue
			}
			last = reject.Line
			if i.refused++; i.refused <= maxShown && reject.Line >= 1 && reject.Line <= len(units) {
				i.Line(fmt.Sprintf("unit %s: %s: %s", units[reject.Line-1].HardwareID, reject.Reason, reject.Detail))
			}
		}
	}
	return nil
}

// refusal returns why nothing may be sent, or nil.
func (i *importer) refusal() error {
	i.End()
	switch {
	case i.skipped != nil:
		return nil
	case i.summary.BadLines > 0:
		return process.Refusef("Lines that cannot be read: %d. Nothing was sent. Correct them, or give --skip-bad FILE to "+
			"send the rest.", i.summary.BadLines)
	case i.refused > 0:
		return process.Refusef("Units whose readings cannot be stored: %d. Nothing was sent. Register them with "+
			"'roomsensor device create', or give --skip-bad FILE to send them anyway: they become rejects.", i.refused)
	}
	return nil
}

// send sends all readings.
func (i *importer) send(ctx context.Context, receiver *client.Receiver) error {
	var batch csvimport.Batch
	flush := func() error {
		lines := batch.Take()
		if len(lines) == 0 {
			return nil
		}
		receipt, err := receiver.Upload(ctx, lines)
		i.sent += receipt.Readings
		return err
	}
	err := i.each(ctx, "sending", func(name string, _ *csvimport.File, l *csvimport.Line) error {
		switch {
		case l.Problem != "" && i.skipped == nil:
			return process.Refusef("%s changed during the import: line %d %s.", name, l.Number, l.Problem)
		case l.Problem != "" || l.IsEmpty() || batch.Add(l):
			return nil
		}
		err := flush()
		batch.Add(l) // An empty batch takes any reading.
		return err
	})
	if err != nil {
		return err
	}
	return flush()
}

func (i *importer) result() importResult {
	r := importResult{
		Readings: i.summary.Readings, Sent: i.sent, LinesWithoutValues: i.summary.WithoutValues,
		BadLines: i.summary.BadLines, Units: i.summary.Units(), FirstBadLines: i.first,
	}
	for u := range r.Units {
		if from := &r.Units[u].From; r.From == nil || from.Before(*r.From) {
			r.From = from
		}
		if to := &r.Units[u].To; r.To == nil || to.After(*r.To) {
			r.To = to
		}
	}
	return r
}

// explain returns the error of an import as a person sees it.
func (i *importer) explain(ctx context.Context, url string, err error) error {
	i.End()
	const flag = "--ingest-url (INGEST_URL)"
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusNotFound {
		err = fmt.Errorf("%w. Check that %s is the address of the receiver, and not of the API", err, flag)
	}
	kept := "Nothing was sent."
	if i.sent > 0 {
		kept = fmt.Sprintf("%d of %d readings were sent; run the same command again to continue.", i.sent,
			i.summary.Readings)
	}
	switch {
	case ctx.Err() != nil:
		return process.Refusef("Interrupted. %s", kept)
	case i.sent > 0:
		return fmt.Errorf("%w. %s", explainURL(ctx, "receiver at "+url, flag, err), kept)
	}
	return explainURL(ctx, "receiver at "+url, flag, err)
}
