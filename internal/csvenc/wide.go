package csvenc

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Wide appends the wide layout: a line for each bucket, five columns for each
// selected device (decision 29). Rows must come ordered by bucket.
type Wide struct {
	names  []string // of the devices, in the order of their columns
	column map[uuid.UUID]int

	bucket bucketText
	at     time.Time
	values []roomsensor.Values // of the line that is being gathered
	open   bool                // whether there is such a line
}

// NewWide takes every device of the team, over which collisions of names are
// judged, and the ids of those that are selected.
func NewWide(team []roomsensor.NamedDevice, selected []uuid.UUID) *Wide {
	named := Names(team)
	order := slices.Clone(selected)
	slices.SortFunc(order, func(a, b uuid.UUID) int { return cmp.Compare(named[a], named[b]) })
	w := &Wide{
		names:  make([]string, len(order)),
		column: make(map[uuid.UUID]int, len(order)),
		values: make([]roomsensor.Values, len(order)),
	}
	for i, id := range order {
		w.names[i] = named[id]
		w.column[id] = i
	}
	return w
}

// AppendHeader appends the header row.
func (w *Wide) AppendHeader(dst []byte) []byte {
	dst = append(dst, "bucket_at"...)
	for _, name := range w.names {
		for _, m := range roomsensor.Metrics {
			dst = append(append(dst, ','), name...)
			dst = append(append(dst, '.'), m.String()...)
		}
	}
	return append(dst, '\n')
}

// AppendRow gathers one reading; once a row is of another bucket, the line of
// the bucket before is appended.
func (w *Wide) AppendRow(dst []byte, row *roomsensor.ExportRow) []byte {
	if w.open && !row.BucketAt.Equal(w.at) {
		dst = w.AppendEnd(dst)
	}
	w.open, w.at = true, row.BucketAt
	if i, ok := w.column[row.DeviceID]; ok {
		w.values[i] = row.Values
	}
	return dst
}

// AppendEnd appends the line that is still being gathered, if there is one.
func (w *Wide) AppendEnd(dst []byte) []byte {
	if !w.open {
		return dst
	}
	dst = append(dst, w.bucket.of(w.at)...)
	for i := range w.values {
		dst = appendMetrics(dst, &w.values[i])
	}
	clear(w.values)
	w.open = false
	return append(dst, '\n')
}
