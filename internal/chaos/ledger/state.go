package ledger

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// State is what a device's row says of its last upload.
type State struct {
	Device     uuid.UUID
	LastSeenAt time.Time // zero: never
	Firmware   string
	RSSI       int
}

// States holds the devices against the newest arrival of each (decision 39).
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
			v.lost(1, "device %s was last seen at %s and says %s", is.Device,
				roomsensor.FormatTime(want.LastSeenAt), roomsensor.FormatTime(is.LastSeenAt))
		case is != want:
			v.wrong("device %s has the state %+v and not %+v", is.Device, is, want)
		}
	}
	return v
}

func (l *Ledger) newest() map[uuid.UUID]State {
	newest := map[uuid.UUID]State{}
	for _, u := range l.uploads {
		for _, a := range u.arrivals {
			at := a.At.UTC().Truncate(time.Microsecond)
			if !u.Sees || !at.After(newest[u.Unit.Device].LastSeenAt) {
				continue
			}
			newest[u.Unit.Device] = State{u.Unit.Device, at, firmwareOf(u.ID), rssiOf(u.ID)}
		}
	}
	return newest
}
