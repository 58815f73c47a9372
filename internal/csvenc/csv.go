package csvenc

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Columns are the columns of an export that a client can choose (A6).
type Columns struct {
	Metrics    []roomsensor.Metric // in the order of roomsensor.Metrics
	IngestedAt bool                // whether the long shape ends with ingested_at
	ByID       bool                // whether the wide shape names its columns by device_id
}

// Long appends the long shape (spec 2, CSV row).
type Long struct {
	columns Columns
	bucket  bucketText
	devices *deviceCells
}

// NewLong makes a Long. devices has the names of all devices that may occur.
func NewLong(devices []roomsensor.NamedDevice, columns Columns) *Long {
	return &Long{columns: columns, devices: newDeviceCells(devices)}
}

// deviceCells has the cells device_id and display_name of devices, with a comma before each. It expects that a device
// follows the same one as before, because the rows of each bucket have the same order; others cost a map lookup.
type deviceCells struct {
	cells map[uuid.UUID]*deviceCell
	last  *deviceCell
}

type deviceCell struct {
	id   uuid.UUID
	text []byte
	next *deviceCell // followed this one before
}

func newDeviceCells(devices []roomsensor.NamedDevice) *deviceCells {
	c := &deviceCells{cells: make(map[uuid.UUID]*deviceCell, len(devices)), last: &deviceCell{}}
	for _, d := range devices {
		c.add(d)
	}
	return c
}

func (c *deviceCells) add(d roomsensor.NamedDevice) *deviceCell {
	cell := &deviceCell{id: d.ID, text: cellsOf(d)}
	c.cells[d.ID] = cell
	return cell
}

// get returns the cells of a device. One that appeared meanwhile has no name yet.
func (c *deviceCells) get(id uuid.UUID) []byte {
	if next := c.last.next; next != nil && next.id == id {
		c.last = next
		return next.text
	}
	cell, ok := c.cells[id]
	if !ok {
		cell = c.add(roomsensor.NamedDevice{ID: id})
	}
	c.last.next, c.last = cell, cell
	return cell.text
}

func cellsOf(d roomsensor.NamedDevice) []byte {
	cells := append([]byte{','}, d.ID.String()...)
	cells = append(cells, ',')
	if d.DisplayName != nil {
		cells = AppendField(cells, Guard(*d.DisplayName))
	}
	return cells
}

// AppendHeader appends the header row.
func (l *Long) AppendHeader(dst []byte) []byte {
	dst = append(dst, "bucket_at,device_id,display_name"...)
	for _, m := range l.columns.Metrics {
		dst = append(append(dst, ','), m.String()...)
	}
	dst = append(dst, ",valid_mask"...)
	if l.columns.IngestedAt {
		dst = append(dst, ",ingested_at"...)
	}
	return append(dst, '\n')
}

// AppendRow appends the line of one reading.
func (l *Long) AppendRow(dst []byte, row *roomsensor.ExportRow) []byte {
	dst = append(dst, l.bucket.format(row.BucketAt)...)
	dst = append(dst, l.devices.get(row.DeviceID)...)
	dst = appendMetrics(dst, l.columns.Metrics, &row.Values)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, uint64(row.Values.Mask()), 10)
	if l.columns.IngestedAt {
		dst = roomsensor.AppendTime(append(dst, ','), row.IngestedAt)
	}
	return append(dst, '\n')
}

// AppendEnd appends nothing: every line is complete.
func (l *Long) AppendEnd(dst []byte) []byte { return dst }

// AppendField appends one field, quoted if it contains a comma, a quote, CR or LF.
func AppendField(dst []byte, field string) []byte {
	if !strings.ContainsAny(field, ",\"\r\n") {
		return append(dst, field...)
	}
	dst = append(dst, '"')
	for i := range len(field) {
		if field[i] == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, field[i])
	}
	return append(dst, '"')
}

// Guard prepends an apostrophe to a text that a spreadsheet would run as a formula (decision 27, CWE-1236).
func Guard(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// appendMetrics appends a comma and a cell for each of some metrics.
func appendMetrics(dst []byte, metrics []roomsensor.Metric, values *roomsensor.Values) []byte {
	for _, m := range metrics {
		dst = append(dst, ',')
		if x, ok := values.Get(m); ok {
			dst = roomsensor.AppendNumber(dst, x)
		}
	}
	return dst
}

// bucketText caches the text of the last bucket: rows are ordered by time, so many consecutive rows have the same one.
type bucketText struct {
	at   time.Time
	text []byte
}

func (b *bucketText) format(at time.Time) []byte {
	if len(b.text) == 0 || !at.Equal(b.at) {
		b.at, b.text = at, roomsensor.AppendTime(b.text[:0], at)
	}
	return b.text
}
