package roomsensor

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// Change is a reading of the change feed with its device (A5.2).
type Change struct {
	Reading

	DeviceID uuid.UUID
}

const (
	// FeedReach is how old the starting point of the change feed may be (A5.1), and the lifetime of its cursors (A5.6).
	FeedReach = 30 * 24 * time.Hour
	// FeedMargin is how much earlier the feed begins than the starting point that a client asks for (A5.8). A reading gets
	// its time in the feed when its transaction begins, which is at most 45 seconds before the commit (A5.4).
	FeedMargin = time.Minute
	// FeedKeep is the retention of what is known about late readings in the feed. A round that began earlier cannot go on.
	// It is longer than FeedReach, because a client that asks for one page in a while carries an old round in a new
	// cursor.
	FeedKeep = 60 * 24 * time.Hour
	// MaxDeletions is the most deletions of readings of a team within FeedKeep, of about 100 bytes each.
	MaxDeletions = 10_000
	// MaxPageDeletions is the most deletions of a page of the change feed (A5.12).
	MaxPageDeletions = 1000
)

// ErrTooManyDeletions reports that a team has MaxDeletions.
var ErrTooManyDeletions = errors.New("the team has the most deletions of readings")

// ReadingDeletion is a range of buckets of a device that an operator deleted (A5.12).
type ReadingDeletion struct {
	Window

	DeviceID  uuid.UUID
	DeletedAt time.Time // its time in the feed
}

// ReadingRange describes the readings of a device in a window.
type ReadingRange struct {
	Readings, Samples int64
	First, Last       time.Time // the buckets of the first and the last one, if there are any
	Newest            bool      // the last one is the newest reading of the device
}

// FeedRound is a part of the change feed: the readings whose time in the feed is at or after From and before To. To is
// a watermark, so that no reading joins the round later. A reading that changes leaves it.
type FeedRound = Window

// FeedWatermark is a watermark of the change feed.
type FeedWatermark struct {
	At       time.Time
	Position Position // before which everything before At is committed; zero if no standby serves reads
}

// FeedPosition is a place in a round, just after a reading. The readings of a round have the order of FeedSpan, device
// and bucket.
type FeedPosition struct {
	DeviceID uuid.UUID
	BucketAt time.Time
}

// FeedSpanLength is the length of a FeedSpan. It is that of a chunk, so that an old chunk is read once and in the order
// of its key.
const FeedSpanLength = 7 * 24 * time.Hour

// FeedSpan returns the span of buckets to which a bucket belongs. Spans begin where chunks of their length do.
func FeedSpan(bucket time.Time) Window {
	length := int64(FeedSpanLength / time.Second)
	seconds := bucket.Unix()
	start := seconds - (seconds%length+length)%length
	return Window{From: time.Unix(start, 0).UTC(), To: time.Unix(start+length, 0).UTC()}
}

// FeedQuery selects readings of a round of the change feed.
type FeedQuery struct {
	Round       FeedRound
	After       *FeedPosition     // nil at the start of the round
	Cursor      *time.Time        // the watermark in the client's cursor; nil without one
	Devices     []uuid.UUID       // nil: all devices of the team
	Metadata    map[string]string // tags that the devices must have
	ExternalRef *string           // only what was measured during assignments with this external_ref (A18.2)
	Most        int               // a number of readings that is enough
	Deletions   int               // the most deletions; 0: none
}

// FeedProgress is how far a round was read.
type FeedProgress struct {
	After *FeedPosition // the last reading that was taken, or a later place; nil at the start of the round
	Done  bool          // the round has no more readings

	// Deleted are the deletions of the round, which come before its readings. There are none if the query has a position
	// in the round. If there are too many, the round ends earlier, at Until; zero means as the query says.
	Deleted []ReadingDeletion
	Until   time.Time
}

// FeedChanges are the devices that changed in a part of the feed.
type FeedChanges struct {
	Any     bool                      // any device of any team may have changed
	Devices map[uuid.UUID][]uuid.UUID // by team
}
