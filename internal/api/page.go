package api

import (
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

// sendPage sends a page of items, which are one more than the page holds if there is a next page. mark stores the
// position of an item in the state.
func sendPage[T any](s *server, c *call, state *cursor.State, items []T,
	mark func(last *T), appendItem func([]byte, *T) []byte,
) error {
	buffer := getBuffer()
	defer putBuffer(buffer)
	page := newPage(*buffer, state.Limit)
	for i := range items {
		if page.next() {
			page.body = appendItem(page.body, &items[i])
			mark(&items[i])
		}
	}
	*buffer = page.end(s, state)
	c.rows = page.items
	return c.writeList(*buffer)
}

// page builds the body of a list while its items are read. The caller reads one item more than the page holds; that
// item is not sent and shows that there is a next page.
type page struct {
	body  []byte
	limit int
	items int
	more  bool
}

func newPage(buffer []byte, limit int) *page { return &page{body: beginList(buffer), limit: limit} }

// next begins an item. It returns false for the item that is not sent.
func (p *page) next() bool {
	if p.items == p.limit {
		p.more = true
		return false
	}
	p.items++
	p.body = element(p.body)
	return true
}

// end returns the whole body. If there is a next page, the body has a cursor with the state, which must have the
// position of the last item.
func (p *page) end(s *server, state *cursor.State) []byte {
	if !p.more {
		return endList(p.body, nil)
	}
	state.IssuedAt = s.now()
	sealed := s.cursors.Seal(state)
	return endList(p.body, &sealed)
}
