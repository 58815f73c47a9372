package csvimport

import (
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	// maxBatch is the most bytes of the readings of one request: far below the 16 MiB that a receiver accepts, so that a
	// retry is cheap and the memory small.
	maxBatch = 1 << 20
	// maxSpan is the longest time from the first to the last reading of an upload. It may not create more than 60 chunks,
	// of which the shortest has a day (decision 53 c).
	maxSpan = (roomsensor.MaxNewChunks - 2) * 24 * time.Hour
	// maxReading is more than the bytes of a reading, and of an upload beside its readings.
	maxReading = 300
)

// Batch collects readings of several units into one request of uploads. The zero Batch is empty.
type Batch struct {
	uploads map[string]*upload
	order   []*upload
	bytes   int
}

// upload is the upload of one unit.
type upload struct {
	text     []byte // without its end
	readings int
	from, to time.Time
}

// Add adds the reading of a line. It returns false, and adds nothing, if the request or the upload would be too large:
// take the uploads first.
func (b *Batch) Add(l *Line) bool {
	u, known := b.uploads[l.HardwareID]
	if !known {
		u = &upload{from: l.MeasuredAt, to: l.MeasuredAt}
	}
	from, to := roomsensor.Earlier(u.from, l.MeasuredAt), roomsensor.Later(u.to, l.MeasuredAt)
	if b.bytes+maxReading > maxBatch || u.readings == roomsensor.MaxUploadReadings ||
		len(u.text)+maxReading > roomsensor.MaxUploadBytes || to.Sub(from) > maxSpan {
		return false
	}
	before := len(u.text)
	if !known {
		if b.uploads == nil {
			b.uploads = map[string]*upload{}
		}
		b.uploads[strings.Clone(l.HardwareID)] = u
		b.order = append(b.order, u)
		u.text = append(u.text, `{"hardware_id":"`+l.HardwareID+`","readings":[`...)
	}
	if u.readings > 0 {
		u.text = append(u.text, ',')
	}
	u.text = l.AppendJSON(u.text, false)
	u.readings, u.from, u.to = u.readings+1, from, to
	b.bytes += len(u.text) - before
	return true
}

// Take returns the uploads as JSON Lines, and empties the batch. It returns nothing for an empty one.
func (b *Batch) Take() (lines []byte) {
	lines = make([]byte, 0, b.bytes+len("]}\n")*len(b.order))
	for _, u := range b.order {
		lines = append(append(lines, u.text...), "]}\n"...)
	}
	*b = Batch{}
	return lines
}
