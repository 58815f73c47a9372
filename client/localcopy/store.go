package localcopy

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
)

// Changes are changes of the readings of a copy: ranges that were deleted, and rows that were inserted or changed after
// that.
type Changes struct {
	Deleted []client.ReadingDeletion
	Rows    []client.DeviceReading
}

// deletes reports whether a deletion has a row.
func deletes(d *client.ReadingDeletion, r *client.DeviceReading) bool {
	return r.DeviceID == d.DeviceID && !r.BucketAt.Before(d.From) && r.BucketAt.Before(d.To)
}

// add adds changes that are later. Rows that they delete are removed.
func (c *Changes) add(more Changes) {
	for i := range more.Deleted {
		c.Rows = slices.DeleteFunc(c.Rows, func(r client.DeviceReading) bool { return deletes(&more.Deleted[i], &r) })
	}
	c.Deleted, c.Rows = append(c.Deleted, more.Deleted...), append(c.Rows, more.Rows...)
}

func (c *Changes) count() int { return len(c.Deleted) + len(c.Rows) }

// Phase is what a copy does.
type Phase string

// The phases.
const (
	Loading   Phase = "loading"   // downloads all readings
	Importing Phase = "importing" // writes them into the store
	Following Phase = "following" // writes changes
)

// State says what a copy has. It is stored with the readings.
type State struct {
	Version int       `json:"version"`
	Team    uuid.UUID `json:"team_id"`
	Phase   Phase     `json:"phase"`
	// Position is the cursor of the change feed. The copy has every change before it, once it follows.
	Position client.Position `json:"position"`
	// From is the start of the copy. LoadFrom and To are the window of the first load.
	From     time.Time `json:"from"`
	LoadFrom time.Time `json:"load_from"`
	To       time.Time `json:"to"`
	// Files are those of the first load that are not written into the store yet.
	Files []LoadedFile `json:"files,omitempty"`
	// CaughtUpAt is when the last request began that found nothing more to read.
	CaughtUpAt time.Time `json:"caught_up_at"`
	// ListsAt is when the first request for the stored Lists began. It is zero before the first ones.
	ListsAt time.Time `json:"lists_at,omitzero"`
}

// Lists are what a copy has beside the readings: all of what the service has.
type Lists struct {
	Devices []client.Device
	// Assignments are those that overlap the period of the copy, each once.
	Assignments []client.TeamAssignment
}

// LoadedFile is a file in the LoadDir of a store.
type LoadedFile struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"` // readings that the service counted
}

// Store is where a copy is kept. Its methods are not called concurrently.
type Store interface {
	// State returns the state; ok is false if the store is new.
	State(ctx context.Context) (s State, ok bool, err error)
	// SetLists replaces the lists and sets the state, all in one step or not at all.
	SetLists(ctx context.Context, lists Lists, s State) error
	// Import inserts or replaces rows of a period, in the order of time. If it is interrupted, it is repeated.
	Import(ctx context.Context, rows iter.Seq2[client.DeviceReading, error]) error
	// Commit removes the readings that were deleted, then inserts or replaces rows, and sets the state, all in one step or
	// not at all. Of two rows of the same bucket of a device, the later one counts.
	Commit(ctx context.Context, changes Changes, s State) error
	// Batch says how changes are collected: Commit is called when either limit is reached. 0 means at once.
	Batch() (changes int, age time.Duration)
	// LoadDir is a directory for the files of the first load. It is removed afterwards.
	LoadDir() string
	// Close closes the store.
	Close() error
}

// Tags returns the metadata of a device, which is never nil.
func Tags(d client.Device) map[string]string {
	if d.Metadata == nil {
		return map[string]string{}
	}
	return d.Metadata
}
