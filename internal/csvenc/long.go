package csvenc

import (
	"strconv"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Long appends the long layout (spec 2, CSV row).
type Long struct {
	bucket  bucketText
	devices map[uuid.UUID][]byte // the cells device_id and display_name, commas around them
}

// NewLong takes the names of all devices that rows may be of.
func NewLong(devices []roomsensor.NamedDevice) *Long {
	l := &Long{devices: make(map[uuid.UUID][]byte, len(devices))}
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
	for _, m := range roomsensor.Metrics {
		dst = append(append(dst, ','), m.String()...)
	}
	return append(dst, ",valid_mask\n"...)
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
	dst = appendMetrics(dst, &row.Values)
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, uint64(row.Values.Mask()), 10)
	return append(dst, '\n')
}

// AppendEnd appends nothing: every line is complete.
func (l *Long) AppendEnd(dst []byte) []byte { return dst }
