package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/xuri/excelize/v2"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
)

// Sheet is what an export for a spreadsheet has beside its selection: local times, and who was in the room.
type Sheet struct {
	Zone    *time.Location
	Means   aggregate.Interval             // of the rows; empty for single readings
	Headers [roomsensor.MetricCount]string // of the columns of metrics
	Comma   bool                           // ExcelCSV only: decimal commas, and semicolons between cells
}

// sheetRow is a row of a spreadsheet.
type sheetRow struct {
	from, to time.Time
	deviceID uuid.UUID
	values   roomsensor.Values
}

// sheet writes the rows of a spreadsheet.
type sheet interface {
	header(names []string) error
	// row writes a time, its offset from UTC, two texts, and a cell per metric; nil is an empty one.
	row(at time.Time, texts []string, numbers []*float32) error
	// end sends what was kept back, after the last row.
	end() error
}

// prepareSheet opens an export for a spreadsheet.
func (e *Exporter) prepareSheet(ctx context.Context, r *Request, p *plan, countOnly bool) (*download, error) {
	now := e.now().Truncate(time.Microsecond)
	if p.ongoing {
		p.window = p.window.Intersect(roomsensor.Window{To: now})
	}
	rows, err := e.openSheetRows(ctx, r, p, countOnly)
	if err != nil {
		return nil, err
	}
	assignments, err := e.assignments(ctx, r, p)
	if err != nil {
		rows.Close()
		return nil, err
	}
	c := sheetContent{request: r, names: map[uuid.UUID]string{}, assignments: map[uuid.UUID][]roomsensor.Assignment{}}
	for i := range p.team {
		if c.names[p.team[i].ID] = p.team[i].ID.String(); p.team[i].DisplayName != nil {
			c.names[p.team[i].ID] = *p.team[i].DisplayName
		}
	}
	for i := range assignments {
		id := assignments[i].DeviceID
		c.assignments[id] = append(c.assignments[id], assignments[i])
	}
	d := &download{
		fileName: p.fileName("readings", "xlsx", now), rows: rows.Rows(), lines: rows.Rows(), close: rows.Close,
		contentType: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		body: func(ctx context.Context, w *writer) error {
			return c.sendExcel(ctx, newExcel(w), rows)
		},
	}
	if r.Format == ExcelCSV {
		d.fileName, d.contentType, d.coded = p.fileName("readings", "csv", now), "text/csv; charset=utf-8", true
		d.body = func(ctx context.Context, w *writer) error { return c.send(ctx, newExcelCSV(w, r.Sheet.Comma), rows) }
	}
	return d, nil
}

// sheetRows are the rows of a spreadsheet.
type sheetRows interface {
	rowSource[sheetRow]
	Close()
}

// openSheetRows opens the readings, or their means.
func (e *Exporter) openSheetRows(ctx context.Context, r *Request, p *plan, countOnly bool) (sheetRows, error) {
	if r.Sheet.Means == "" {
		rows, err := e.openReadings(ctx, r, p, roomsensor.ExportQuery{CountOnly: countOnly})
		if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
			return nil, p.tooManyRows(tooMany)
		}
		if err != nil {
			return nil, err
		}
		return readingSheet{rows}, nil
	}
	lines, err := e.openAggregates(ctx, r, p, aggregate.ExportQuery{
		Calendar: aggregate.NewCalendar(r.Sheet.Means, r.Sheet.Zone), CountOnly: countOnly, Now: e.now(),
	})
	return meanSheet{lines}, err
}

// readingSheet has a row per reading.
type readingSheet struct{ Readings }

// Each calls f with every reading.
func (s readingSheet) Each(ctx context.Context, f func(*sheetRow) error) error {
	return s.Readings.Each(ctx, func(row *roomsensor.ExportRow) error {
		return f(&sheetRow{
			from: row.BucketAt, to: row.BucketAt.Add(roomsensor.BucketLength), deviceID: row.DeviceID, values: row.Values,
		})
	})
}

// meanSheet has a row per hour or day with readings.
type meanSheet struct{ Aggregates }

// Close does nothing: the rows are in memory.
func (meanSheet) Close() {}

// Each calls f with the means of every hour or day.
func (s meanSheet) Each(ctx context.Context, f func(*sheetRow) error) error {
	return s.Aggregates.Each(ctx, func(row *aggregate.Row) error {
		to := sheetRow{from: row.Bucket.From, to: row.Bucket.To, deviceID: row.DeviceID}
		for _, m := range roomsensor.Metrics {
			if row.Metrics[m].Count > 0 {
				to.values.Set(m, row.Metrics[m].Mean)
			}
		}
		return f(&to)
	})
}

// sheetContent turns rows into cells.
type sheetContent struct {
	request     *Request
	names       map[uuid.UUID]string
	assignments map[uuid.UUID][]roomsensor.Assignment // by device
}

// sendExcel sends an .xlsx file. One whose rows failed has no end and is not sent: it would look complete.
func (c *sheetContent) sendExcel(ctx context.Context, x *excel, rows sheetRows) (err error) {
	defer func() { err = errors.Join(err, x.file.Close()) }() // It may have a temporary file.
	return c.send(ctx, x, rows)
}

// send writes all rows into a sheet.
func (c *sheetContent) send(ctx context.Context, to sheet, rows sheetRows) error {
	names := []string{"Time", "UTC offset", "Room", "Athlete or place"}
	for _, m := range c.request.Metrics {
		names = append(names, c.request.Sheet.Headers[m])
	}
	if err := to.header(names); err != nil {
		return err
	}
	numbers := make([]*float32, len(c.request.Metrics))
	err := sendRows(ctx, rows, func(row *sheetRow) error {
		for i, m := range c.request.Metrics {
			numbers[i] = nil
			if x, ok := row.values.Get(m); ok {
				numbers[i] = &x
			}
		}
		return to.row(row.from.In(c.request.Sheet.Zone), []string{c.names[row.deviceID], c.assigned(row)}, numbers)
	})
	if err != nil {
		return err
	}
	return to.end()
}

// assigned returns the labels of the assignments of a device during a row, the oldest first.
func (c *sheetContent) assigned(row *sheetRow) string {
	var labels []string
	for i := range c.assignments[row.deviceID] {
		a := &c.assignments[row.deviceID][i]
		during := !a.Window().Intersect(roomsensor.Window{From: row.from, To: row.to}).Empty()
		if during && !slices.Contains(labels, a.Label) {
			labels = append(labels, a.Label)
		}
	}
	return strings.Join(labels, " / ")
}

// excel writes an .xlsx file. Beyond 16 MB of rows, it keeps them in a temporary file until its end.
type excel struct {
	file        *excelize.File
	stream      *excelize.StreamWriter
	out         io.Writer
	next        int // row
	bold, dates int // styles
}

func newExcel(out io.Writer) *excel {
	return &excel{file: excelize.NewFile(), out: out, next: 1}
}

func (x *excel) header(names []string) error {
	var err error
	if x.stream, err = x.file.NewStreamWriter("Sheet1"); err == nil {
		x.bold, err = x.file.NewStyle(&excelize.Style{Font: &excelize.Font{Bold: true}})
	}
	if err == nil {
		x.dates, err = x.file.NewStyle(&excelize.Style{CustomNumFmt: new("yyyy-mm-dd hh:mm")})
	}
	if err == nil {
		err = x.stream.SetColWidth(1, 1, 17)
	}
	if err == nil {
		err = x.stream.SetColWidth(3, 4, 24)
	}
	if err == nil {
		err = x.stream.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"})
	}
	cells := make([]any, len(names))
	for i, name := range names {
		cells[i] = excelize.Cell{StyleID: x.bold, Value: name}
	}
	return x.add(err, cells)
}

func (x *excel) row(at time.Time, texts []string, numbers []*float32) error {
	cells := []any{excelize.Cell{StyleID: x.dates, Value: at}, at.Format("-07:00")}
	for _, text := range texts {
		cells = append(cells, text)
	}
	for _, number := range numbers {
		if number == nil {
			cells = append(cells, nil)
		} else {
			cells = append(cells, shortest(*number))
		}
	}
	return x.add(nil, cells)
}

// shortest returns the number that has the digits of a float32, such as 21.4, and not those of its float64.
func shortest(x float32) float64 {
	number, _ := strconv.ParseFloat(string(roomsensor.AppendNumber(nil, x)), 64) // It is a number.
	return number
}

func (x *excel) add(err error, cells []any) error {
	if err == nil {
		err = x.stream.SetRow("A"+strconv.Itoa(x.next), cells)
	}
	if x.next++; err != nil {
		return fmt.Errorf("writing a spreadsheet: %w", err)
	}
	return nil
}

// end sends the file.
func (x *excel) end() error {
	err := x.stream.Flush()
	if err == nil {
		err = x.file.Write(x.out)
	}
	if err != nil {
		return fmt.Errorf("writing a spreadsheet: %w", err)
	}
	return nil
}

// excelCSV writes a CSV that Excel opens with a double click: with a byte order mark, and with the separators of the
// person's language.
type excelCSV struct {
	*bufio.Writer

	separator string
	comma     bool
	line      []byte
}

func newExcelCSV(out io.Writer, comma bool) *excelCSV {
	c := &excelCSV{Writer: bufio.NewWriter(out), separator: ",", comma: comma}
	if comma {
		c.separator = ";"
	}
	return c
}

func (c *excelCSV) header(names []string) error {
	c.line = append(c.line[:0], "\ufeff"...)
	for i, name := range names {
		c.cell(i, name)
	}
	return c.endLine()
}

func (c *excelCSV) row(at time.Time, texts []string, numbers []*float32) error {
	c.line = c.line[:0]
	c.cell(0, at.Format("2006-01-02 15:04"))
	c.cell(1, at.Format("-07:00"))
	for _, text := range texts {
		c.cell(1, csvenc.Guard(text))
	}
	for _, number := range numbers {
		text := airquality.FormatLimit(number)
		if c.comma {
			text = strings.Replace(text, ".", ",", 1)
		}
		c.cell(1, text)
	}
	return c.endLine()
}

// cell appends a cell; the first one of a line has the index 0.
func (c *excelCSV) cell(i int, text string) {
	if i > 0 {
		c.line = append(c.line, c.separator...)
	}
	if strings.ContainsAny(text, "\"\r\n;,") && (!c.comma || !isDecimal(text)) || text != strings.TrimSpace(text) {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	c.line = append(c.line, text...)
}

// isDecimal reports whether a text is a number with a decimal comma, which needs no quotes beside semicolons.
func isDecimal(text string) bool { return strings.Trim(text, "0123456789-,") == "" }

func (c *excelCSV) endLine() error {
	_, err := c.Write(append(c.line, '\r', '\n'))
	return err //nolint:wrapcheck // The writer of the response wraps it.
}

// end sends the last lines.
func (c *excelCSV) end() error {
	return c.Flush() //nolint:wrapcheck // The writer of the response wraps it.
}
