package csvenc

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Columns are the columns of an export that a client can choose (A6), and how their cells are written.
type Columns struct {
	Metrics    []roomsensor.Metric // in the order of roomsensor.Metrics
	IngestedAt bool                // whether the long shape has ingested_at
	ByID       bool                // whether the wide shape names its columns by device_id
	// Assigned has the assignments of the long shape, by device and start; nil leaves out their columns (A18.3).
	Assigned []roomsensor.Assignment

	Zone  *time.Location // of local_time; nil leaves out the column (A19.1)
	Excel bool           // a byte order mark, and local_time without an offset (A19.2)
	Comma bool           // decimal commas, and semicolons between cells
}

// Long appends the long shape (spec 2, CSV row).
type Long struct {
	columns  Columns
	style    style
	bucket   bucketText
	devices  *deviceCells
	assigned *roomsensor.Held[[]byte] // nil without their columns
}

// NewLong makes a Long. devices has the names of all devices that may occur.
func NewLong(devices []roomsensor.NamedDevice, columns Columns) *Long {
	s := columns.style()
	l := &Long{columns: columns, style: s, bucket: bucketText{style: s}, devices: newDeviceCells(devices, s)}
	if columns.Assigned != nil {
		l.assigned = newAssignedCells(columns.Assigned, s)
	}
	return l
}

// deviceCells has the cells device_id and display_name of devices, with a separator before each. It expects that a
// device follows the same one as before, because the rows of each bucket have the same order; others cost a map lookup.
type deviceCells struct {
	style style
	cells map[uuid.UUID]*deviceCell
	last  *deviceCell
}

type deviceCell struct {
	id   uuid.UUID
	text []byte
	next *deviceCell // followed this one before
}

func newDeviceCells(devices []roomsensor.NamedDevice, s style) *deviceCells {
	c := &deviceCells{style: s, cells: make(map[uuid.UUID]*deviceCell, len(devices)), last: &deviceCell{}}
	for _, d := range devices {
		c.add(d)
	}
	return c
}

func (c *deviceCells) add(d roomsensor.NamedDevice) *deviceCell {
	cell := &deviceCell{id: d.ID, text: c.cellsOf(d)}
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

func (c *deviceCells) cellsOf(d roomsensor.NamedDevice) []byte {
	return c.style.appendText(append([]byte{c.style.separator}, d.ID.String()...), d.DisplayName)
}

// AppendHeader appends the header row.
func (l *Long) AppendHeader(dst []byte) []byte {
	names := []string{"device_id", "display_name"}
	for _, m := range l.columns.Metrics {
		names = append(names, m.String())
	}
	names = append(names, "valid_mask")
	if l.columns.IngestedAt {
		names = append(names, "ingested_at")
	}
	if l.assigned != nil {
		names = append(names, "assignment_id", "label", "external_ref")
	}
	return l.style.appendHeader(dst, names...)
}

// AppendRow appends the line of one reading.
func (l *Long) AppendRow(dst []byte, row *roomsensor.ExportRow) []byte {
	dst = append(dst, l.bucket.format(row.BucketAt)...)
	dst = append(dst, l.devices.get(row.DeviceID)...)
	dst = l.style.appendMetrics(dst, l.columns.Metrics, &row.Values)
	dst = append(dst, l.style.separator)
	dst = strconv.AppendUint(dst, uint64(row.Values.Mask()), 10)
	if l.columns.IngestedAt {
		dst = roomsensor.AppendTime(append(dst, l.style.separator), row.IngestedAt)
	}
	if l.assigned != nil {
		if cells, ok := l.assigned.At(row.DeviceID, row.BucketAt); ok {
			dst = append(dst, cells...)
		} else {
			dst = append(dst, l.style.separator, l.style.separator, l.style.separator)
		}
	}
	return append(dst, '\n')
}

// AppendEnd appends nothing: every line is complete.
func (l *Long) AppendEnd(dst []byte) []byte { return dst }

// AppendField appends one field, quoted if it contains a comma, a quote, CR or LF.
func AppendField(dst []byte, field string) []byte { return appendField(dst, field, ",\"\r\n") }

func appendField(dst []byte, field, quoted string) []byte {
	if !strings.ContainsAny(field, quoted) {
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
