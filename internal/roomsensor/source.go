package roomsensor

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// MaxSources is how many sources a team may have.
const MaxSources = 100

// Source takes what devices and platforms send in their own formats (A10.1).
type Source struct {
	ID         uuid.UUID
	TeamID     uuid.UUID
	Name       string // unique in the team
	Format     string
	Mapping    string // a JSON document whose members replace those of the format; empty if none does
	CreatedAt  time.Time
	DisabledAt *time.Time // nil for a source that takes messages
}

// SourceActivity is what a source received. The counts are of the last 24 hours, by the hour in which workers stored
// the messages. A message that is delivered again counts again.
type SourceActivity struct {
	LastReceivedAt *time.Time // nil before the first message
	Messages       int64
	Stored         int64 // measurements
	Rejected       int64 // rejects
	Ignored        int64 // parts of messages that the mapping ignores
}

// ListedSource is a source with what it received.
type ListedSource struct {
	Source
	SourceActivity
}

// SourceMessage is a message of a source.
type SourceMessage struct {
	ReceivedAt time.Time
	Text       []byte // nil if it was too long to be kept
	Precision  string // as in Arrival
}

// SourceChange is a change of a source. What is nil stays the same.
type SourceChange struct {
	Name     *string
	Format   *string
	Mapping  *string // an empty text removes it
	Disabled *bool
}

// SourceCount is what became of messages of a source.
type SourceCount struct {
	SourceID uuid.UUID
	Newest   SourceMessage
	Messages int64
	Stored   int64
	Rejected int64
	Ignored  int64
}

// TeamAlias is an alias in a team, by its key (NormalizeAlias).
type TeamAlias struct {
	TeamID uuid.UUID
	Key    string
}

// The conflicts of sources.
type (
	// SourceExistsError means that the team has another source with the name.
	SourceExistsError struct{ Name string }
	// TooManySourcesError means that the team has MaxSources sources.
	TooManySourcesError struct{}
)

func (e *SourceExistsError) Error() string { return fmt.Sprintf("the team has a source %q", e.Name) }

func (*TooManySourcesError) Error() string {
	return fmt.Sprintf("the team has %d sources, which is the most", MaxSources)
}
