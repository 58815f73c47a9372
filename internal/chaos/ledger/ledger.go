// Package ledger knows what was sent, what the senders were told, and therefore what the tables must hold: it makes
// uploads whose every value follows from their identity, keeps the outcome of each, and compares it with what is found.
// It does no I/O, so that any trial can use it: of processes, of containers, of a cluster.
package ledger

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Outcome is what a sender knows of an upload. Of several attempts the greatest counts.
type Outcome int

// The outcomes.
const (
	// Failed was refused, or never left: no attempt can have been stored. It must be absent.
	Failed Outcome = iota
	// Unknown had no answer, or one that allows for both. It may be absent, or there as a whole, but never in part.
	Unknown
	// OK was confirmed: it must be there, as a whole and once.
	OK
)

// Unit is a hardware unit and the device in which it sat.
type Unit struct {
	HardwareID string
	Team       int // index of the team
	Device     uuid.UUID
	// From and To are when it sat there: [From, To), zero is an open end.
	From, To time.Time
}

// sits reports whether the unit is in its device now: a trial takes nothing out while it runs.
func (u *Unit) sits() bool { return u.To.IsZero() }

// Upload is an upload and what became of it.
type Upload struct {
	ID   int // in its text too, as the field "ledger", which the service ignores
	Unit *Unit
	Text []byte
	// Readings are those that must be stored, as they must be stored.
	Readings []roomsensor.Measurement
	// Reject is the reason of the reject that every arrival of it makes; empty: none.
	Reject roomsensor.Reason
	// Sees says that its arrival moves the state of the unit's device.
	Sees bool

	outcome  Outcome
	attempts int
	arrivals []Arrival
}

// Arrival is a message of the stream that holds an upload.
type Arrival struct {
	Sequence uint64
	At       time.Time
}

// Key is where a reading stands in the tables.
type Key struct {
	Device uuid.UUID
	Bucket int64 // seconds since 1970
}

// KeyOf is the key of a reading.
func KeyOf(device uuid.UUID, bucket time.Time) Key { return Key{device, bucket.Unix()} }

// carrier is an upload that brings a measurement for a key.
type carrier struct {
	upload      *Upload
	measurement roomsensor.Measurement
}

// Ledger is the book of all uploads. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	uploads map[int]*Upload
	keys    map[Key][]carrier
}

// New makes a ledger of uploads of which none was sent yet.
func New(requests []*Request) *Ledger {
	l := &Ledger{uploads: map[int]*Upload{}, keys: map[Key][]carrier{}}
	for _, r := range requests {
		for _, u := range r.Uploads {
			l.add(u)
		}
	}
	return l
}

func (l *Ledger) add(u *Upload) {
	if l.uploads[u.ID] != nil {
		return // Sent twice on purpose.
	}
	l.uploads[u.ID] = u
	for _, m := range u.Readings {
		key := KeyOf(u.Unit.Device, m.Bucket())
		l.keys[key] = append(l.keys[key], carrier{u, m})
	}
}

// Note records the outcome of one attempt to send some uploads.
func (l *Ledger) Note(uploads []*Upload, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range uploads {
		u.attempts++
		u.outcome = max(u.outcome, o)
	}
}

// Arrived records that a message of the stream holds an upload; it returns false for one that the ledger does not know.
// What the stream holds must reach the tables, whatever the sender was told: an unknown upload counts as OK then.
func (l *Ledger) Arrived(id int, a Arrival) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.uploads[id]
	if u == nil {
		return false
	}
	u.arrivals = append(u.arrivals, a)
	return true
}

// Tally counts the uploads of a ledger.
type Tally struct {
	Uploads  int `json:"uploads"`
	Attempts int `json:"attempts"`
	OK       int `json:"ok"`
	Failed   int `json:"failed"`
	// Unsent are those that nobody tried to send. They must be absent, as the failed ones.
	Unsent  int `json:"unsent,omitempty"`
	Unknown int `json:"unknown"`
	// UnknownStored are the unknown ones that the stream holds nevertheless.
	UnknownStored int `json:"unknown_but_stored"`
	Readings      int `json:"readings_ok"`
	// Messages is how many messages the stream holds, Repeated how many of them repeat an upload.
	Messages int `json:"stream_messages"`
	Repeated int `json:"stream_repeats"`
	// Excess is how many messages the stream holds beyond the attempts to send them: made by the queue.
	Excess int `json:"stream_excess"`
}

// Tally counts.
func (l *Ledger) Tally() (t Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.uploads {
		t.Uploads++
		t.Attempts += u.attempts
		t.Messages += len(u.arrivals)
		t.Repeated += max(0, len(u.arrivals)-1)
		t.Excess += max(0, len(u.arrivals)-u.attempts)
		switch u.outcome {
		case OK:
			t.OK++
			t.Readings += len(u.Readings)
		case Unknown:
			t.Unknown++
			if len(u.arrivals) > 0 {
				t.UnknownStored++
			}
		case Failed:
			if u.attempts == 0 {
				t.Unsent++
			} else {
				t.Failed++
			}
		}
	}
	return t
}

// certainty is the outcome in the light of what the stream holds.
func (u *Upload) certainty() Outcome {
	if u.outcome == Unknown && len(u.arrivals) > 0 {
		return OK
	}
	return u.outcome
}
