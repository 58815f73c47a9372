package ledger

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Outcome is what a sender knows about an upload. Of several attempts the greatest outcome counts.
type Outcome int

// The outcomes.
const (
	// Failed means that every attempt was refused or never left the sender. The upload must be absent.
	Failed Outcome = iota
	// Unknown means that there was no conclusive answer. The upload may be absent or complete, but never partial.
	Unknown
	// OK means that the upload was confirmed. It must be present, complete and once.
	OK
)

// Unit is a hardware unit and the device that it is assigned to.
type Unit struct {
	HardwareID string
	Team       int // index of the team
	Device     uuid.UUID
	// From and To are the assignment, [From, To). Zero is unbounded.
	From, To time.Time
}

// isAssigned reports whether the unit is assigned now. A trial ends no assignment while it runs.
func (u *Unit) isAssigned() bool { return u.To.IsZero() }

// Upload is an upload and its outcome.
type Upload struct {
	ID   int // also in Text, as a part of the firmware version
	Unit *Unit
	Text []byte
	// Readings are the measurements that must be stored, with the values that must be stored.
	Readings []roomsensor.Measurement
	// Reject is the reason of the reject that each arrival of the upload creates. Empty means none.
	Reject roomsensor.Reason
	// Heartbeat is set if its arrival updates last_seen_at and the state of the unit's device (decision 39).
	Heartbeat bool

	path     Path // of its first request
	outcome  Outcome
	attempts int
	arrivals []Arrival
}

// Arrival is a message of the stream that contains an upload.
type Arrival struct {
	Sequence uint64
	At       time.Time
}

// Key identifies a reading in the tables.
type Key struct {
	Device uuid.UUID
	Bucket int64 // seconds since 1970
}

// KeyOf returns the key of a reading.
func KeyOf(device uuid.UUID, bucket time.Time) Key { return Key{device, bucket.Unix()} }

// source is an upload that contains a measurement for a key.
type source struct {
	upload      *Upload
	measurement roomsensor.Measurement
}

// Ledger records all uploads. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	uploads map[int]*Upload
	keys    map[Key][]source
}

// New returns a ledger of the uploads of some requests. None of them is sent yet.
func New(requests []*Request) *Ledger {
	l := &Ledger{uploads: map[int]*Upload{}, keys: map[Key][]source{}}
	for _, r := range requests {
		for _, u := range r.Uploads {
			l.add(u, r.Path)
		}
	}
	return l
}

func (l *Ledger) add(u *Upload, path Path) {
	if l.uploads[u.ID] != nil {
		return // The request is sent twice on purpose.
	}
	u.path = path
	l.uploads[u.ID] = u
	for _, m := range u.Readings {
		key := KeyOf(u.Unit.Device, m.Bucket())
		l.keys[key] = append(l.keys[key], source{u, m})
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

// Arrived records that a message of the stream contains an upload. It returns false for an upload that is not in the
// ledger. What is in the stream must reach the tables, whatever answer the sender got: an Unknown upload then counts as
// OK.
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
	Sourced  int `json:"ok_to_sources"` // those of OK that were sent to a source
	Failed   int `json:"failed"`
	// Unsent counts uploads without an attempt. Like failed ones, they must be absent.
	Unsent  int `json:"unsent,omitempty"`
	Unknown int `json:"unknown"`
	// UnknownStored counts unknown uploads that are in the stream.
	UnknownStored int `json:"unknown_but_stored"`
	Readings      int `json:"readings_ok"`
	// Messages counts the messages of the stream, Repeated those of them that repeat an upload.
	Messages int `json:"stream_messages"`
	Repeated int `json:"stream_repeats"`
	// Excess counts messages of the stream beyond the attempts to send them, which the queue duplicated.
	Excess int `json:"stream_excess"`
}

// Tally counts the uploads.
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
			if u.path == Source {
				t.Sourced++
			}
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

// knownOutcome returns the outcome, taking into account what is in the stream.
func (u *Upload) knownOutcome() Outcome {
	if u.outcome == Unknown && len(u.arrivals) > 0 {
		return OK
	}
	return u.outcome
}
