package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Shape is the layout of a CSV export.
type Shape string

// The shapes.
const (
	Long Shape = "long" // one row per reading
	Wide Shape = "wide" // one row per timestamp, with the columns of all selected devices
)

// ExportQuery selects the readings of an export: at most 250,000.
type ExportQuery struct {
	Window Window
	// Devices are at most 1000 devices. nil means all devices of the team.
	Devices []uuid.UUID
	// Metadata leaves out the devices that do not have all of these tags with exactly these values.
	Metadata map[string]string
	// ExternalRef selects the readings of the assignments with exactly this reference, each on its own device and within
	// its own time. Send it without Devices and without an assignment. Empty selects all readings.
	ExternalRef string
	// Metrics are the metrics that the export has. nil means all.
	Metrics []Metric
	// Shape is the layout of a CSV export. Empty means Long.
	Shape Shape
	// ColumnIDs names the columns of the shape Wide after the ids of devices, which a new display name does not change.
	ColumnIDs bool
	// IngestedAt adds the column ingested_at to the shape Long: when a reading was stored.
	IngestedAt bool
	// Assignment adds the columns assignment_id, label and external_ref to the shape Long and to Parquet: those of the
	// assignment that held the device.
	Assignment bool
	// TimeZone adds the column local_time, in the zone with this IANA name.
	TimeZone string
	// Excel writes a CSV for spreadsheets. Empty means that it does not.
	Excel Excel
}

// Excel is how a CSV is written for spreadsheets: with a byte order mark, and with local_time, which has no offset.
type Excel string

// The forms. A language with decimal commas needs ExcelComma, which also has semicolons between cells.
const (
	ExcelPoint Excel = "true"
	ExcelComma Excel = "comma"
)

func (q ExportQuery) values() (url.Values, error) {
	v := url.Values{}
	addList(v, "devices", q.Devices)
	addMetadata(v, q.Metadata)
	addText(v, "external_ref", q.ExternalRef)
	addList(v, "metrics", q.Metrics)
	addText(v, "shape", string(q.Shape))
	if q.ColumnIDs {
		v.Set("columns", "id")
	}
	var included []string
	if q.IngestedAt {
		included = append(included, "ingested_at")
	}
	if q.Assignment {
		included = append(included, "assignment")
	}
	addList(v, "include", included)
	addText(v, "time_zone", q.TimeZone)
	addText(v, "excel", string(q.Excel))
	return v, q.Window.add(v)
}

// addList adds a comma-separated list, unless it is nil. An empty list is sent, and refused: it must not mean all.
func addList[T any](v url.Values, name string, items []T) {
	if items == nil {
		return
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	v.Set(name, strings.Join(texts, ","))
}

// Export is the file of an export while it is downloaded. Read it to its end, and close it.
type Export struct {
	// Rows is the number of readings, or of lines after the header of a CSV file. -1 if a proxy removed it.
	Rows int
	// Name is the file name that the service suggests.
	Name string
	// Header is the header of the response.
	Header http.Header

	body     io.ReadCloser
	complete func(tail []byte, lines int) error
	lines    lineCounter
	tail     []byte // the last bytes, at most tailLength
	err      error
}

// ErrTruncated means that an export ended before its end. Discard what was read of it.
var ErrTruncated = errors.New("the export is incomplete")

// ExportCSV requests the readings of many devices as CSV, ordered by time and then by device. More than 250,000
// readings are CodeCSVTooLarge. The caller reads and closes the export.
func (c *Client) ExportCSV(ctx context.Context, q ExportQuery) (*Export, error) {
	v, err := q.values()
	if err != nil {
		return nil, err
	}
	return c.exportCSV(ctx, "/readings.csv", v)
}

// exportCSV requests an export as CSV.
func (c *Client) exportCSV(ctx context.Context, path string, query url.Values) (*Export, error) {
	e, err := c.export(ctx, get(path, query))
	if err == nil {
		e.complete = e.checkLines
	}
	return e, err
}

// ExportParquet requests the readings of many devices as an Apache Parquet file, in the same order as ExportCSV. Only
// Window, Devices, Metadata, ExternalRef, Metrics, Assignment and TimeZone apply, and IngestedAt is always set; the
// others are refused. The caller reads and closes the export.
func (c *Client) ExportParquet(ctx context.Context, q ExportQuery) (*Export, error) {
	v, err := q.values()
	if err != nil {
		return nil, err
	}
	e, err := c.export(ctx, get("/readings.parquet", v))
	if err == nil {
		e.complete = checkParquet
	}
	return e, err
}

// CountReadings returns the number of lines that ExportCSV would return after the header. It has the same errors.
func (c *Client) CountReadings(ctx context.Context, q ExportQuery) (int, error) {
	v, err := q.values()
	if err != nil {
		return 0, err
	}
	e, err := c.head(ctx, "/readings.csv", v, nil)
	if err != nil {
		return 0, err
	}
	return e.Rows, nil
}

// ReadingsUnchanged reports whether ExportCSV, or with parquet ExportParquet, would still return the bytes with a
// SHA-256, in hexadecimal digits. It has the errors of the export: one that is too large by now is CodeCSVTooLarge.
func (c *Client) ReadingsUnchanged(ctx context.Context, q ExportQuery, parquet bool, sum string) (bool, error) {
	v, err := q.values()
	if err != nil {
		return false, err
	}
	path := "/readings.csv"
	if parquet {
		path = "/readings.parquet"
	}
	_, err = c.head(ctx, path, v, http.Header{"If-None-Match": {`W/"` + sum + `"`}})
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Status == http.StatusNotModified {
		return true, nil
	}
	return false, err
}

// head requests what an export would be. The response to HEAD has no body, and thus neither code nor message: GET has
// those of a refusal.
func (c *Client) head(ctx context.Context, path string, query url.Values, header http.Header) (*Export, error) {
	e, err := c.export(ctx, &request{method: http.MethodHead, path: path, query: query, header: header})
	refusal, refused := errors.AsType[*Error](err)
	if refused && refusal.Status < http.StatusInternalServerError && refusal.Status != http.StatusNotModified {
		e, err = c.export(ctx, get(path, query))
	}
	if err != nil {
		return nil, err
	}
	return e, e.Close()
}

// export requests an export.
func (c *Client) export(ctx context.Context, r *request) (*Export, error) {
	response, err := c.open(ctx, r) //nolint:bodyclose // Export.Close closes it.
	if err != nil {
		return nil, err
	}
	e := &Export{Rows: -1, Header: response.Header, body: response.Body}
	if n, err := strconv.Atoi(response.Header.Get("X-Row-Count")); err == nil {
		e.Rows = n
	}
	if _, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Disposition")); err == nil {
		e.Name = parameters["filename"]
	}
	return e, nil
}

// Read reads the file. It returns io.EOF only if the file is complete, and otherwise ErrTruncated.
func (e *Export) Read(p []byte) (n int, err error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err = e.body.Read(p)
	e.note(p[:n])
	switch {
	case errors.Is(err, io.EOF):
		err = io.EOF
		if wrong := e.complete(e.tail, e.lines.ended); wrong != nil {
			err = wrong
		}
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	e.err = err
	return n, err
}

// Close ends the download.
func (e *Export) Close() error { return e.body.Close() } //nolint:wrapcheck // A reader returns errors unchanged.

const tailLength = len(parquetMark)

// note remembers what the check at the end needs.
func (e *Export) note(p []byte) {
	e.lines.add(p)
	e.tail = append(e.tail, p[max(0, len(p)-tailLength):]...)
	e.tail = e.tail[max(0, len(e.tail)-tailLength):]
}

// checkLines compares the number of lines of a CSV file with that of its header.
func (e *Export) checkLines(_ []byte, lines int) error {
	if e.Rows >= 0 && lines != e.Rows+1 {
		return fmt.Errorf("%w: it has %d rows of %d", ErrTruncated, lines-1, e.Rows)
	}
	return nil
}

// parquetMark ends a Parquet file. The service sends it last.
const parquetMark = "PAR1"

// checkParquet checks the end of a Parquet file.
func checkParquet(tail []byte, _ int) error {
	if string(tail) != parquetMark {
		return fmt.Errorf("%w: it has no footer", ErrTruncated)
	}
	return nil
}

// lineCounter counts the records of a CSV file. A line feed inside quotes does not end a record.
type lineCounter struct {
	ended  int
	quoted bool
}

func (l *lineCounter) add(p []byte) {
	for {
		i := bytes.IndexByte(p, '"')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		if !l.quoted {
			l.ended += bytes.Count(part, []byte("\n"))
		}
		if i < 0 {
			return
		}
		l.quoted = !l.quoted
		p = p[i+1:]
	}
}
