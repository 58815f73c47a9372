package csvenc

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Wide appends the wide shape: one line per bucket, with the selected metrics of each selected device (decision 29).
// Rows must be ordered by bucket.
type Wide struct {
	style   style
	metrics []roomsensor.Metric // the columns of each device
	names   []string            // of the devices, in the order of their columns
	column  map[uuid.UUID]int

	bucket bucketText
	at     time.Time
	values []roomsensor.Values // of the current line
	open   bool                // whether there is a current line
}

// NewWide makes a Wide. team has every device of the team, because the name of a column depends on all of them;
// selected has the ids of the devices to export.
func NewWide(team []roomsensor.NamedDevice, selected []uuid.UUID, columns Columns) *Wide {
	named := wideNames(team, selected, columns)
	order := slices.Clone(selected)
	slices.SortFunc(order, func(a, b uuid.UUID) int { return cmp.Compare(named[a], named[b]) })
	w := &Wide{
		style: columns.style(), bucket: bucketText{style: columns.style()},
		metrics: columns.Metrics,
		names:   make([]string, len(order)),
		column:  make(map[uuid.UUID]int, len(order)),
		values:  make([]roomsensor.Values, len(order)),
	}
	for i, id := range order {
		w.names[i] = named[id]
		w.column[id] = i
	}
	return w
}

// wideNames returns the names of the selected devices in the columns.
func wideNames(team []roomsensor.NamedDevice, selected []uuid.UUID, columns Columns) map[uuid.UUID]string {
	if !columns.ByID {
		return Names(team)
	}
	names := make(map[uuid.UUID]string, len(selected))
	for _, id := range selected {
		names[id] = id.String()
	}
	return names
}

// AppendHeader appends the header row.
func (w *Wide) AppendHeader(dst []byte) []byte {
	var names []string
	for _, name := range w.names {
		for _, m := range w.metrics {
			names = append(names, name+"."+m.String())
		}
	}
	return w.style.appendHeader(dst, names...)
}

// AppendRow adds a reading to the current line. If the reading belongs to another bucket, it first appends the current
// line and begins a new one.
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

// AppendEnd appends the current line, if there is one.
func (w *Wide) AppendEnd(dst []byte) []byte {
	if !w.open {
		return dst
	}
	dst = append(dst, w.bucket.format(w.at)...)
	for i := range w.values {
		dst = w.style.appendMetrics(dst, w.metrics, &w.values[i])
	}
	clear(w.values)
	w.open = false
	return append(dst, '\n')
}

// shortID is the length of the prefix of an id that distinguishes equal names.
const shortID = 8

// Names returns the name of each device of a team within the names of wide columns (decision 29). Devices whose names
// collide all get a longer name until no two names are equal: first the slug, then the slug with the first 8 digits of
// the id, then the slug with the whole id. The last is unique, because no slug contains a hyphen.
func Names(team []roomsensor.NamedDevice) map[uuid.UUID]string {
	names := make(map[uuid.UUID]string, len(team))
	exactness := make([]int, len(team))
	for {
		members := make(map[string][]int, len(team))
		for i, d := range team {
			names[d.ID] = nameOf(d, exactness[i])
			members[names[d.ID]] = append(members[names[d.ID]], i)
		}
		if len(members) == len(names) {
			return names
		}
		for _, same := range members {
			if len(same) < 2 {
				continue
			}
			for _, i := range same {
				exactness[i]++
			}
		}
	}
}

func nameOf(d roomsensor.NamedDevice, exactness int) string {
	id, name := d.ID.String(), ""
	if d.DisplayName != nil {
		name = Slug(*d.DisplayName)
	}
	if name == "" {
		name = "device_" + id[:shortID]
	}
	switch exactness {
	case 0:
		return name
	case 1:
		return name + "_" + id[:shortID]
	}
	return name + "_" + id
}

// Slug returns a name in lower case, with one underscore for every run of characters other than a-z and 0-9, and none
// at either end.
func Slug(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if ('a' > r || r > 'z') && ('0' > r || r > '9') {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}
