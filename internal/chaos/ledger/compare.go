package ledger

import (
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
)

// Row is a reading as it was found. MeasuredAt and IngestedAt are zero where the place of finding does not tell them.
type Row struct {
	Key
	Values     roomsensor.Values
	MeasuredAt time.Time
	IngestedAt time.Time
}

func (r *Row) String() string {
	return fmt.Sprintf("reading of device %s at %s", r.Device, roomsensor.FormatTime(time.Unix(r.Bucket, 0)))
}

// Found are the readings of one place, each once.
type Found map[Key]Row

// Compare holds the readings that were found in one place against the ledger.
func (l *Ledger) Compare(rows []Row) (Found, Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var v Verdict
	found := make(Found, len(rows))
	for i := range rows {
		row := &rows[i]
		if _, twice := found[row.Key]; twice {
			v.duplicated(1, "%s stands twice", row)
			continue
		}
		found[row.Key] = *row
		l.compareRow(row, &v)
	}
	for key, carriers := range l.keys {
		if _, there := found[key]; !there && sure(carriers) {
			v.lost(1, "%s, which upload %d brought", &Row{Key: key}, carriers[0].upload.ID)
		}
	}
	for _, u := range l.uploads {
		l.compareUnknown(u, found, &v)
	}
	return found, v
}

func sure(carriers []carrier) bool {
	for _, c := range carriers {
		if c.upload.certainty() == OK {
			return true
		}
	}
	return false
}

func (l *Ledger) compareRow(row *Row, v *Verdict) {
	allowed := possible(l.keys[row.Key])
	if len(allowed) == 0 {
		v.phantom("%s was sent by nobody, or refused", row)
		return
	}
	for _, m := range allowed {
		if row.Values == m.Values && (row.MeasuredAt.IsZero() || row.MeasuredAt.Equal(m.MeasuredAt)) {
			return
		}
	}
	v.wrong("%s has %v of %s", row, row.Values, roomsensor.FormatTime(row.MeasuredAt))
}

// possible lists what a key may hold: all that surely came, united with any of what may have come (decision 37). It is
// empty where nothing can have come.
func possible(carriers []carrier) (all []roomsensor.Measurement) {
	var base *roomsensor.Measurement
	for _, c := range carriers {
		if c.upload.certainty() == OK {
			base = united(base, c.measurement)
		}
	}
	if base != nil {
		all = append(all, *base)
	}
	for _, c := range carriers {
		if c.upload.certainty() != Unknown {
			continue
		}
		for _, m := range all {
			all = append(all, roomsensor.Unite(m, c.measurement))
		}
		if base == nil {
			all = append(all, c.measurement)
		}
	}
	return all
}

func united(base *roomsensor.Measurement, m roomsensor.Measurement) *roomsensor.Measurement {
	if base != nil {
		m = roomsensor.Unite(*base, m)
	}
	return &m
}

// compareUnknown counts what is missing of an upload that may be absent but is half there. A reading that others bring
// too tells nothing.
func (l *Ledger) compareUnknown(u *Upload, found Found, v *Verdict) {
	if u.certainty() != Unknown {
		return
	}
	own, there := 0, 0
	for _, m := range u.Readings {
		key := KeyOf(u.Unit.Device, m.Bucket())
		if len(l.keys[key]) > 1 {
			continue
		}
		own++
		if _, ok := found[key]; ok {
			there++
		}
	}
	if there > 0 && there < own {
		v.lost(own-there, "%d of %d readings of upload %d, whose outcome is unknown", own-there, own, u.ID)
	}
}

// Unchanged holds what was found later against what was found before: what was given again changes nothing, not even
// ingested_at (decision 38).
func (before Found) Unchanged(after Found) (v Verdict) {
	for key, was := range before {
		is, there := after[key]
		switch {
		case !there:
			v.lost(1, "%s is gone", &was)
		case is.Values != was.Values, !is.MeasuredAt.Equal(was.MeasuredAt), !is.IngestedAt.Equal(was.IngestedAt):
			v.wrong("%s changed: ingested_at was %s and is %s", &was,
				roomsensor.FormatTime(was.IngestedAt), roomsensor.FormatTime(is.IngestedAt))
		}
	}
	for key, is := range after {
		if _, there := before[key]; !there {
			v.phantom("%s is new", &is)
		}
	}
	return v
}
