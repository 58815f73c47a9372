// Package csvenc appends the two CSV layouts of the bulk export: long, one
// line a reading, and wide, one line a bucket. It writes LF line ends, quotes
// only where RFC 4180 asks for it, and prints null as an empty cell
// (decision 27).
package csvenc

import (
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// AppendField appends one field, in quotes where it holds a comma, a quote, CR
// or LF.
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

// Guard puts a quote mark before a text that a spreadsheet would run as a
// formula (decision 27, CWE-1236).
func Guard(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// appendMetrics appends a comma and a cell for each metric.
func appendMetrics(dst []byte, values *roomsensor.Values) []byte {
	for _, m := range roomsensor.Metrics {
		dst = append(dst, ',')
		if x, ok := values.Get(m); ok {
			dst = roomsensor.AppendNumber(dst, x)
		}
	}
	return dst
}

// bucketText keeps the text of the last bucket: in an export ordered by time,
// many rows in a row share it.
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
