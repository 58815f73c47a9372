package api

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// The parameters of every list.
const (
	cursorParameter = "cursor"
	limitParameter  = "limit"
)

// limit returns the maximum number of items of a page, or 0 if the parameter was not sent (decision 9).
func (q query) limit() (int, error) {
	text := q.get(limitParameter)
	if text == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(*text, 10, 32)
	if err != nil || n < 1 || n > roomsensor.MaxPage {
		return 0, roomsensor.CodeValidationFailed.New() // Its default message is about limit.
	}
	return int(n), nil
}

// readCursor decrypts the cursor of a request, or returns nil on a first page. It applies the checks of decision 12 in
// their order, except the comparison of other parameters with the first page.
func (s *server) readCursor(
	c *call, q query, endpoint cursor.Endpoint, device uuid.UUID,
) (*cursor.State, error) {
	text := q.get(cursorParameter)
	if text == nil {
		return nil, nil //nolint:nilnil // A request without a cursor is for the first page.
	}
	state, err := s.cursors.Open(*text)
	if err != nil {
		return nil, roomsensor.CodeCursorInvalid.New()
	}
	return state, state.Check(endpoint, c.key.ID, device, s.now())
}

// firstPage returns the state of a first page.
func firstPage(c *call, endpoint cursor.Endpoint, device uuid.UUID) *cursor.State {
	return &cursor.State{Endpoint: endpoint, KeyID: c.key.ID, Device: device, Limit: roomsensor.MaxPage}
}

// continued reports whether a page continues another one, that is, whether its state comes from a cursor.
func continued(state *cursor.State) bool { return !state.IssuedAt.IsZero() }

// withLimit sets the length of the page if the parameter was sent. Otherwise the page is as long as the previous one
// (decision 12).
func withLimit(state *cursor.State, limit int) *cursor.State {
	if limit > 0 {
		state.Limit = limit
	}
	return state
}

// differs returns the error of a parameter whose value is not that of the first page (decision 12).
func differs(param string) error {
	shown := masked(param)
	return roomsensor.Invalid(shown, shown+" differs from the first page of this list. "+
		"Leave it out, or leave the cursor out to start again.")
}

// smallPageBytes is the limit of a page at the first attempt: 1,000 devices with some tags each.
const smallPageBytes = 2 << 20

// sendPage reads a page and sends it. read adds the items to the page, in order and one more than the page holds, and
// moves the position in its state. itemBytes is the most bytes that an item has.
//
// Most pages are small. A page that turns out to be large is read again, after it has reserved the memory: one that
// waited for memory while it reads would keep its connection to the database from others.
func (s *server) sendPage(
	ctx context.Context, c *call, state *cursor.State, itemBytes int, read func(*page) error,
) error {
	buffer := getBuffer()
	defer putBuffer(buffer)
	for _, maxBytes := range []int{smallPageBytes, roomsensor.MaxPageBytes} {
		share, err := s.bodies.reserve(ctx, c.key.TeamID, min(maxBytes, state.Limit*itemBytes))
		if err != nil {
			return err
		}
		p := s.newPage(*buffer, state, maxBytes)
		err = s.tryPage(c, p, read, share)
		share.release()
		*buffer = p.body
		if err != nil || p.sent {
			return err
		}
	}
	return nil
}

// tryPage reads a page and sends it, unless it has to be read again with more room.
func (s *server) tryPage(c *call, p *page, read func(*page) error, share *bodyShare) error {
	if err := read(p); err != nil {
		return err
	}
	if p.cut && p.maxBytes < roomsensor.MaxPageBytes {
		return nil
	}
	p.end(s)
	share.shrink(len(p.body))
	c.rows, p.sent = p.items, true
	return c.writeList(p.body)
}

// page builds the body of a list while its items are read.
type page struct {
	body     []byte
	state    cursor.State // has the position of the last item
	maxBytes int
	room     int // bytes of body that leave room for the end of the envelope
	items    int
	more     bool // there is a next page
	cut      bool // there is one because of maxBytes
	sent     bool
}

func (s *server) newPage(buffer []byte, state *cursor.State, maxBytes int) *page {
	if maxBytes > smallPageBytes {
		buffer = make([]byte, 0, maxBytes+maxDeviceBytes) // To grow step by step would take several times as much.
	}
	sealed := s.cursors.Seal(state)
	return &page{
		body: beginList(buffer[:0]), state: *state, maxBytes: maxBytes,
		room: maxBytes - len(endList([]byte{'['}, &sealed)) + 1,
	}
}

// add appends an item, or returns false if the page ends before it (decisions 9 and 52).
func add[T any](p *page, item *T, appendItem func([]byte, *T) []byte) bool {
	if p.more || p.items == p.state.Limit {
		p.more = true
		return false
	}
	before := len(p.body)
	p.body = appendItem(element(p.body), item)
	if p.items > 0 && len(p.body) > p.room {
		p.body, p.more, p.cut = p.body[:before], true, true
		return false
	}
	p.items++
	return true
}

// end completes the body. If there is a next page, the body has a cursor with the state.
func (p *page) end(s *server) {
	if !p.more {
		p.body = endList(p.body, nil)
		return
	}
	p.state.IssuedAt = s.now()
	sealed := s.cursors.Seal(&p.state)
	p.body = endList(p.body, &sealed)
}
