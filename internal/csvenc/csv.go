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
	devices map[uuid.UUID][]byte // the cells device_id and display_name, with a comma before each
}

// NewLong makes a Long. devices has the names of all devices that may occur.
func NewLong(devices []roomsensor.NamedDevice, columns Columns) *Long {
	l := &Long{columns: columns, devices: make(map[uuid.UUID][]byte, len(devices))}
	for _, d := range devices {
		l.devices[d.ID] = deviceCells(d)
	}
	return l
}

func deviceCells(d roomsensor.NamedDevice) []byte {
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
	cells, ok := l.devices[row.DeviceID]
	if !ok {
		cells = deviceCells(roomsensor.NamedDevice{ID: row.DeviceID})
		l.devices[row.DeviceID] = cells
	}
	dst = append(dst, l.bucket.of(row.BucketAt)...)
	dst = append(dst, cells...)
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

func (b *bucketText) of(at time.Time) []byte {
	if len(b.text) == 0 || !at.Equal(b.at) {
		b.at, b.text = at, roomsensor.AppendTime(b.text[:0], at)
	}
	return b.text
}
