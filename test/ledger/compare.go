package ledger

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Row is a stored reading. MeasuredAt and IngestedAt are zero if it was read from a place that does not contain them.
type Row struct {
	Key
	Values     roomsensor.Values
	MeasuredAt time.Time
	IngestedAt time.Time
}

func (r *Row) String() string {
	return fmt.Sprintf("reading of device %s at %s", r.Device, roomsensor.FormatTime(time.Unix(r.Bucket, 0)))
}

// Found contains the readings that were found in one place, by key.
type Found map[Key]Row

// Compare compares the readings that were found in one place with the ledger.
func (l *Ledger) Compare(rows []Row) (Found, Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var v Verdict
	found := make(Found, len(rows))
	for i := range rows {
		row := &rows[i]
		if _, twice := found[row.Key]; twice {
			v.duplicated(1, "%s is stored twice", row)
			continue
		}
		found[row.Key] = *row
		l.compareRow(row, &v)
	}
	for key, sources := range l.keys {
		if _, ok := found[key]; !ok && isConfirmed(sources) {
			v.lost(1, "%s of upload %d", &Row{Key: key}, sources[0].upload.ID)
		}
	}
	for _, u := range l.uploads {
		l.compareUnknown(u, found, &v)
	}
	return found, v
}

func isConfirmed(sources []source) bool {
	for _, c := range sources {
		if c.upload.knownOutcome() == OK {
			return true
		}
	}
	return false
}

func (l *Ledger) compareRow(row *Row, v *Verdict) {
	allowed := possible(l.keys[row.Key])
	if len(allowed) == 0 {
		v.phantom("%s was never sent, or was refused", row)
		return
	}
	for _, m := range allowed {
		if row.Values == m.Values && (row.MeasuredAt.IsZero() || row.MeasuredAt.Equal(m.MeasuredAt)) {
			return
		}
	}
	v.wrong("%s has %v of %s", row, row.Values, roomsensor.FormatTime(row.MeasuredAt))
}

// possible returns the measurements that a key may hold: the merge of all confirmed ones, merged with any combination
// of the unknown ones (merge rule, decision 37). It is empty if the key must be absent.
func possible(sources []source) (all []roomsensor.Measurement) {
	var base *roomsensor.Measurement
	for _, c := range sources {
		if c.upload.knownOutcome() == OK {
			base = merged(base, c.measurement)
		}
	}
	if base != nil {
		all = append(all, *base)
	}
	for _, c := range sources {
		if c.upload.knownOutcome() != Unknown {
			continue
		}
		for _, m := range all {
			all = append(all, roomsensor.Merge(m, c.measurement))
		}
		if base == nil {
			all = append(all, c.measurement)
		}
	}
	return all
}

func merged(base *roomsensor.Measurement, m roomsensor.Measurement) *roomsensor.Measurement {
	if base != nil {
		m = roomsensor.Merge(*base, m)
	}
	return &m
}

// compareUnknown counts the missing readings of an Unknown upload that is only partially stored. It ignores readings
// that other uploads contain too.
func (l *Ledger) compareUnknown(u *Upload, found Found, v *Verdict) {
	if u.knownOutcome() != Unknown {
		return
	}
	own, stored := 0, 0
	for _, m := range u.Readings {
		key := KeyOf(u.Unit.Device, m.Bucket())
		if len(l.keys[key]) > 1 {
			continue
		}
		own++
		if _, ok := found[key]; ok {
			stored++
		}
	}
	if stored > 0 && stored < own {
		v.lost(own-stored, "%d of %d readings of upload %d, whose outcome is unknown", own-stored, own, u.ID)
	}
}

// Unchanged compares two results of Compare: delivering the same uploads again changes nothing, not even ingested_at
// (decision 38).
func (before Found) Unchanged(after Found) (v Verdict) {
	for key, was := range before {
		is, ok := after[key]
		switch {
		case !ok:
			v.lost(1, "%s disappeared", &was)
		case is.Values != was.Values, !is.MeasuredAt.Equal(was.MeasuredAt), !is.IngestedAt.Equal(was.IngestedAt):
			v.wrong("%s changed: ingested_at was %s and is %s", &was,
				roomsensor.FormatTime(was.IngestedAt), roomsensor.FormatTime(is.IngestedAt))
		}
	}
	for key, is := range after {
		if _, ok := before[key]; !ok {
			v.phantom("%s is new", &is)
		}
	}
	return v
}

// Hour is the number of values per metric in one hour of a device, as readings_hourly has it.
type Hour struct {
	Device uuid.UUID
	Hour   time.Time
	Counts [roomsensor.MetricCount]int
}

// Hours compares the hourly counts with the readings that were found.
func (before Found) Hours(hours []Hour) (v Verdict) {
	const hourSeconds = 3600
	want := map[Key][roomsensor.MetricCount]int{}
	for key, row := range before {
		hour := Key{key.Device, key.Bucket - key.Bucket%hourSeconds}
		counts := want[hour]
		for _, m := range roomsensor.Metrics {
			if _, ok := row.Values.Get(m); ok {
				counts[m]++
			}
		}
		want[hour] = counts
	}
	for _, h := range hours {
		key := KeyOf(h.Device, h.Hour)
		counts := want[key]
		delete(want, key)
		for m, n := range h.Counts {
			h.compare(roomsensor.Metrics[m], n, counts[m], &v)
		}
	}
	for key, counts := range want {
		h := Hour{Device: key.Device, Hour: time.Unix(key.Bucket, 0)}
		for m, n := range counts {
			h.compare(roomsensor.Metrics[m], 0, n, &v)
		}
	}
	return v
}

func (h *Hour) compare(m roomsensor.Metric, counted, stored int, v *Verdict) {
	at := roomsensor.FormatTime(h.Hour)
	switch {
	case counted > stored:
		v.duplicated(counted-stored, "%s of device %s in hour %s: count is %d, want %d", m, h.Device, at, counted, stored)
	case counted < stored:
		v.lost(stored-counted, "%s of device %s in hour %s: count is %d, want %d", m, h.Device, at, counted, stored)
	}
}

// Reject is a row of rejected_uploads.
type Reject struct {
	Sequence uint64
	Reason   roomsensor.Reason
	Payload  []byte
}

// rejectKey identifies a reject of one stream.
type rejectKey struct {
	sequence uint64
	reason   roomsensor.Reason
}

// Rejects compares the rejects with the arrivals: each arrival of an invalid upload creates exactly one reject.
func (l *Ledger) Rejects(rejects []Reject) (v Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := map[rejectKey]*Upload{}
	for _, u := range l.uploads {
		for _, a := range u.arrivals {
			if u.Reject != "" {
				want[rejectKey{a.Sequence, u.Reject}] = u
			}
		}
	}
	seen := map[rejectKey]bool{}
	for _, r := range rejects {
		at := rejectKey{r.Sequence, r.Reason}
		u := want[at]
		switch {
		case seen[at]:
			v.duplicated(1, "reject %s of message %d is stored twice", r.Reason, r.Sequence)
		case u == nil:
			v.phantom("reject %s of message %d, which is valid", r.Reason, r.Sequence)
		default:
			if id, ok := IDOf(r.Payload); !ok || id != u.ID {
				v.wrong("reject %s of message %d does not contain upload %d", r.Reason, r.Sequence, u.ID)
			}
		}
		seen[at] = true
	}
	for at, u := range want {
		if !seen[at] {
			v.lost(1, "reject %s of message %d, upload %d", at.reason, at.sequence, u.ID)
		}
	}
	return v
}

// State is the part of a device's row that its last upload sets.
type State struct {
	Device     uuid.UUID
	LastSeenAt time.Time // zero means never
	Firmware   string
	RSSI       int
}

// States compares the devices with the newest arrival of each (decision 39).
func (l *Ledger) States(states []State) (v Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newest := l.newest()
	for _, is := range states {
		want, seen := newest[is.Device]
		if !seen {
			want = State{Device: is.Device}
		}
		switch {
		case is.LastSeenAt.Before(want.LastSeenAt):
			v.lost(1, "device %s was last seen at %s, and the table has %s", is.Device,
				roomsensor.FormatTime(want.LastSeenAt), roomsensor.FormatTime(is.LastSeenAt))
		case is != want:
			v.wrong("device %s has the state %+v, want %+v", is.Device, is, want)
		}
	}
	return v
}

func (l *Ledger) newest() map[uuid.UUID]State {
	newest := map[uuid.UUID]State{}
	for _, u := range l.uploads {
		for _, a := range u.arrivals {
			at := a.At.UTC().Truncate(time.Microsecond)
			if !u.Heartbeat || !at.After(newest[u.Unit.Device].LastSeenAt) {
				continue
			}
			newest[u.Unit.Device] = State{u.Unit.Device, at, firmwareOf(u.ID), rssiOf(u.ID)}
		}
	}
	return newest
}
