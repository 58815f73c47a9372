package api

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// readState returns the state of a page: that of its cursor, or a new one on a first page.
func (s *server) readState(
	c *call, q httpedge.Query, endpoint cursor.Endpoint, device uuid.UUID,
) (state *cursor.State, first bool, err error) {
	limit, err := q.Limit()
	if err != nil {
		return nil, false, err
	}
	return q.State(s.cursors, cursor.State{Endpoint: endpoint, KeyID: c.key.ID, Device: device}, limit, s.now())
}

// smallPageBytes is the limit of a page at the first attempt: 1,000 devices with some tags each.
const smallPageBytes = 2 << 20

// page is a page of a list with the limit of its attempt.
type page struct {
	*httpedge.Page
	maxBytes int
	sent     bool
}

// sendPage reads a page and sends it. read adds the items to the page, in order and one more than the page holds, and
// moves the position in its state. itemBytes is the most bytes that an item has.
//
// Most pages are small. A page that turns out to be large is read again, after it has reserved the memory: one that
// waited for memory while it reads would keep its connection to the database from others.
func (s *server) sendPage(
	ctx context.Context, c *call, state *cursor.State, itemBytes int, read func(*page) error,
) error {
	buffer := httpedge.GetBuffer()
	defer httpedge.PutBuffer(buffer)
	for _, maxBytes := range []int{smallPageBytes, roomsensor.MaxPageBytes} {
		share, err := reserve(ctx, s.bodies, c.key.TeamID, min(maxBytes, state.Limit*itemBytes), shareWait)
		if err != nil {
			return err
		}
		if maxBytes > smallPageBytes {
			*buffer = make([]byte, 0, maxBytes+maxDeviceBytes) // To grow step by step would take several times as much.
		}
		p := &page{Page: httpedge.NewPage(*buffer, s.cursors, state, maxBytes), maxBytes: maxBytes}
		err = s.tryPage(c, p, read, share)
		share.Release()
		*buffer = p.Body
		if err != nil || p.sent {
			return err
		}
	}
	return nil
}

// tryPage reads a page and sends it, unless it has to be read again with more room.
func (s *server) tryPage(c *call, p *page, read func(*page) error, share *fairshare.Held) error {
	if err := read(p); err != nil {
		return err
	}
	if p.Cut && p.maxBytes < roomsensor.MaxPageBytes {
		return nil
	}
	p.End(s.now())
	share.Keep(len(p.Body))
	c.rows, p.sent = p.Items, true
	return httpedge.WritePage(c.Response(), c.Request(), p.Page)
}

// add appends an item, or returns false if the page ends before it.
func add[T any](p *page, item *T, appendItem func([]byte, *T) []byte) bool {
	return httpedge.AddItem(p.Page, item, appendItem)
}
