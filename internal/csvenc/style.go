package csvenc

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// style is how the cells of an export are written.
type style struct {
	separator byte
	quoted    string // a text with one of these is quoted
	comma     bool   // decimal commas
	mark      bool   // a byte order mark at the beginning
	zone      *time.Location
	local     string // layout of local_time
}

// plain is the style of a CSV without parameters.
var plain = (&Columns{}).style()

func (c *Columns) style() style {
	s := style{separator: ',', quoted: ",\"\r\n", comma: c.Comma, mark: c.Excel, zone: c.Zone, local: roomsensor.LocalTime}
	if c.Comma {
		s.separator, s.quoted = ';', ";,\"\r\n"
	}
	if c.Excel {
		s.local = time.DateTime
	}
	return s
}

// appendHeader appends the header row: bucket_at, local_time if it is selected, and the names.
func (s *style) appendHeader(dst []byte, names ...string) []byte {
	if s.mark {
		dst = append(dst, "\ufeff"...)
	}
	dst = append(dst, "bucket_at"...)
	if s.zone != nil {
		dst = append(append(dst, s.separator), "local_time"...)
	}
	for _, name := range names {
		dst = append(append(dst, s.separator), name...)
	}
	return append(dst, '\n')
}

// appendText appends a separator and a text that people wrote; nil is an empty cell.
func (s *style) appendText(dst []byte, text *string) []byte {
	if dst = append(dst, s.separator); text == nil {
		return dst
	}
	return appendField(dst, Guard(*text), s.quoted)
}

// appendMetrics appends a separator and a cell for each of some metrics.
func (s *style) appendMetrics(dst []byte, metrics []roomsensor.Metric, values *roomsensor.Values) []byte {
	for _, m := range metrics {
		dst = append(dst, s.separator)
		if x, ok := values.Get(m); ok {
			dst = s.appendNumber(dst, x)
		}
	}
	return dst
}

func (s *style) appendNumber(dst []byte, x float32) []byte {
	from := len(dst)
	dst = roomsensor.AppendNumber(dst, x)
	if s.comma {
		for i := from; i < len(dst); i++ {
			if dst[i] == '.' {
				dst[i] = ','
			}
		}
	}
	return dst
}

// bucketText caches the text of the last bucket: rows are ordered by time, so many consecutive rows have the same one.
type bucketText struct {
	style style
	at    time.Time
	text  []byte
}

func (b *bucketText) format(at time.Time) []byte {
	if len(b.text) == 0 || !at.Equal(b.at) {
		b.at, b.text = at, roomsensor.AppendTime(b.text[:0], at)
		if b.style.zone != nil {
			b.text = at.In(b.style.zone).AppendFormat(append(b.text, b.style.separator), b.style.local)
		}
	}
	return b.text
}

// newAssignedCells returns the cells of the assignments that held devices (A18.3).
func newAssignedCells(assignments []roomsensor.Assignment, s style) *roomsensor.Held[[]byte] {
	return roomsensor.NewHeld(assignments, func(a *roomsensor.Assignment) []byte {
		text := append([]byte{s.separator}, a.ID.String()...)
		return s.appendText(s.appendText(text, &a.Label), a.ExternalRef)
	})
}
