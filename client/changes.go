package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

const (
	// changesWait is the time for which the service holds a request that finds no change: its maximum.
	changesWait = 30 * time.Second
	// changesInterval is the least time from one request to the next after the feed has caught up. At this rate, a
	// follower uses half of the requests that its key may send.
	changesInterval = 2 * time.Second
)

// Position is a place in the change feed: all changes before it were returned. It is valid for 30 days, with the key
// that it came with. The empty Position is the start.
type Position string

// ChangeQuery selects changes.
type ChangeQuery struct {
	// Since is the start of a feed without a position, at most 30 days ago. The zero time means now.
	Since time.Time
	// Devices are at most 1000 devices. nil means all devices of the team.
	Devices []uuid.UUID
	// Metadata leaves out the devices that do not have all of these tags with exactly these values.
	Metadata map[string]string
	// ExternalRef selects the readings of the assignments with exactly this reference, each on its own device and within
	// its own time. Send it without Devices. Empty selects all readings.
	ExternalRef string
	// Deletions adds the ranges of readings that an operator deleted. A position is of one kind of feed: with it, or
	// without.
	Deletions bool
	// PageSize is the largest number of readings per page, at most 1000. 0 means 1000.
	PageSize int
	// UntilCaughtUp ends the feed when it has returned every change that is visible. Otherwise it ends with its context.
	UntilCaughtUp bool
	// GiveUp ends the feed with an error if the service does not answer, as WithMaxAttempts and WithMaxWait say.
	GiveUp bool
}

// Changes is a page of the change feed.
type Changes struct {
	// Readings were inserted or changed. They are in no order, except that a later state of a reading comes later. There
	// may be none.
	Readings []DeviceReading `json:"data"`
	// Deleted are ranges of readings that were deleted, with ChangeQuery.Deletions. Remove them from a copy first, and
	// then write the readings.
	Deleted []ReadingDeletion `json:"deleted"`
	// Position is where the feed continues after these readings.
	Position Position `json:"next_cursor"`
	// CaughtUp is false if more changes are visible already.
	CaughtUp bool `json:"caught_up"`
}

// Follow returns the readings that are inserted or changed after a position, page by page, as soon as they are visible.
// It waits for changes, and sends a request again for as long as the service cannot answer, whatever WithMaxAttempts
// and WithMaxWait say, unless GiveUp is set. It ends with the error of its context, or with one that no repetition can
// fix.
//
// To keep an exact copy, write the readings of a page and its Position in one transaction, each reading by its device
// and its BucketAt, and continue with the Position that is stored. A page is returned again if the program ends before
// it stores the Position, and writing it again changes nothing. Store the Position of a page without readings too:
// positions expire after 30 days.
//
// The first copy: note the time, export the readings, and then follow from that time (Since). Do the same if the
// Position has expired or the key is a new one, which is CodeCursorInvalid or CodeCursorTeamMismatch.
func (c *Client) Follow(ctx context.Context, q ChangeQuery, position Position) iter.Seq2[Changes, error] {
	return func(yield func(Changes, error) bool) {
		for position := position; ; {
			sent := time.Now()
			r := get("/readings/changes", q.values(position))
			r.timeout, r.patient = changesWait+attemptTimeout, !q.GiveUp
			page, err := fetch[Changes](ctx, c, r)
			if err != nil {
				yield(Changes{}, err)
				return
			}
			if !yield(page, nil) || page.CaughtUp && q.UntilCaughtUp {
				return
			}
			position = page.Position
			if page.CaughtUp {
				// If ctx ends, so does the next request.
				_ = c.sleep(ctx, changesInterval-time.Since(sent))
			}
		}
	}
}

// values returns the parameters of a request. The filters are sent with a position too, so that the service refuses one
// that came with other filters.
func (q ChangeQuery) values(position Position) url.Values {
	v := url.Values{}
	addList(v, "devices", q.Devices)
	addMetadata(v, q.Metadata)
	addText(v, "external_ref", q.ExternalRef)
	addLimit(v, q.PageSize)
	if q.Deletions {
		v.Set("include", "deletions")
	}
	if position == "" {
		// Without waiting, so that the first position is there at once.
		if !q.Since.IsZero() {
			v.Set("since", formatTime(q.Since))
		}
		return v
	}
	v.Set("cursor", string(position))
	if !q.UntilCaughtUp {
		v.Set("wait", strconv.Itoa(int(changesWait/time.Second)))
	}
	return v
}
