package ledger

import "roomsensor/internal/roomsensor"

// Reject is a reject as it was found.
type Reject struct {
	Sequence uint64
	Reason   roomsensor.Reason
	Payload  []byte
}

// place is what identifies a reject among those of one stream.
type place struct {
	sequence uint64
	reason   roomsensor.Reason
}

// Rejects holds the rejects against the arrivals: every arrival that must make one makes one.
func (l *Ledger) Rejects(rejects []Reject) (v Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := map[place]*Upload{}
	for _, u := range l.uploads {
		for _, a := range u.arrivals {
			if u.Reject != "" {
				want[place{a.Sequence, u.Reject}] = u
			}
		}
	}
	seen := map[place]bool{}
	for _, r := range rejects {
		at := place{r.Sequence, r.Reason}
		u := want[at]
		switch {
		case seen[at]:
			v.duplicated(1, "reject %s of message %d stands twice", r.Reason, r.Sequence)
		case u == nil:
			v.phantom("reject %s of message %d, which was good", r.Reason, r.Sequence)
		default:
			if id, ok := IDOf(r.Payload); !ok || id != u.ID {
				v.wrong("reject %s of message %d does not hold upload %d", r.Reason, r.Sequence, u.ID)
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
