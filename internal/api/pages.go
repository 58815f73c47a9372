package api

import (
	"strconv"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// The parameters that lists share.
const (
	cursorParameter = "cursor"
	limitParameter  = "limit"
)

// limit reads how many items a page may hold; 0 where it was not sent (decision 9).
func (q query) limit() (int, error) {
	text := q.get(limitParameter)
	if text == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(*text, 10, 32)
	if err != nil || n < 1 || n > roomsensor.MaxPage {
		return 0, roomsensor.CodeValidationFailed.New() // Whose example this is.
	}
	return int(n), nil
}

// resume reads the cursor of a request; nil on a first page. It is checked in
// the order of decision 12, all but what differs from the first page.
func (s *server) resume(c *call, q query, endpoint cursor.Endpoint, device uuid.UUID) (*cursor.Walk, error) {
	text := q.get(cursorParameter)
	if text == nil {
		return nil, nil //nolint:nilnil // An absent cursor is the first page and no error.
	}
	walk, err := s.cursors.Open(*text)
	if err != nil {
		return nil, roomsensor.CodeCursorInvalid.New()
	}
	return walk, walk.Check(endpoint, c.key.ID, device, s.now())
}

// begin is the walk of a first page.
func begin(c *call, endpoint cursor.Endpoint, device uuid.UUID) *cursor.Walk {
	return &cursor.Walk{Endpoint: endpoint, KeyID: c.key.ID, Device: device, Limit: roomsensor.MaxPage}
}

// resumed reports whether a walk came with a cursor.
func resumed(walk *cursor.Walk) bool { return !walk.IssuedAt.IsZero() }

// withLimit sets the length of a page where one was sent; else it is that of
// the page before (decision 12).
func withLimit(walk *cursor.Walk, limit int) *cursor.Walk {
	if limit > 0 {
		walk.Limit = limit
	}
	return walk
}

// sendPage answers with what was read, one item more than a page holds. mark
// notes where the page ends.
func sendPage[T any](s *server, c *call, walk *cursor.Walk, items []T,
	mark func(last *T), appendItem func([]byte, *T) []byte,
) error {
	buffer := getBuffer()
	defer putBuffer(buffer)
	page := newPage(*buffer, walk.Limit)
	for i := range items {
		if page.next() {
			page.body = appendItem(page.body, &items[i])
			mark(&items[i])
		}
	}
	*buffer = page.end(s, walk)
	c.rows = page.items
	return c.writeList(*buffer)
}

// page is the body of a list while its items are read, one more than it holds.
// The one too many is not sent; it says that there is a next page.
type page struct {
	body  []byte
	limit int
	items int
	more  bool
}

func newPage(buffer []byte, limit int) *page { return &page{body: beginList(buffer), limit: limit} }

// next makes room for an item; false says that it is the one too many.
func (p *page) next() bool {
	if p.items == p.limit {
		p.more = true
		return false
	}
	p.items++
	p.body = element(p.body)
	return true
}

// end is the whole body. Where there is a next page it has the cursor of a walk,
// which was told where this page ends.
func (p *page) end(s *server, walk *cursor.Walk) []byte {
	if !p.more {
		return endList(p.body, nil)
	}
	walk.IssuedAt = s.now()
	sealed := s.cursors.Seal(walk)
	return endList(p.body, &sealed)
}

// differs answers a parameter that says something else than the first page did
// (decision 12).
func differs(param string) error {
	shown := masked(param)
	return roomsensor.Invalid(shown, shown+" differs from the first page of this walk. "+
		"Leave it out, or leave the cursor out to begin anew.")
}
