package httpedge

import (
	"cmp"
	"strconv"
	"time"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// State returns the state of a page with the limit of the request, if that was sent: that of its cursor, or initial on
// a first page. It applies the checks of decision 12 in their order, except the comparison of other parameters with the
// first page.
func (q Query) State(
	cursors *cursor.Sealer, initial cursor.State, limit int, now time.Time,
) (state *cursor.State, first bool, err error) {
	text := q.Get(CursorParameter)
	if text == nil {
		initial.Limit = cmp.Or(limit, roomsensor.MaxPage)
		return &initial, true, nil
	}
	if state, err = cursors.Open(*text); err != nil {
		return nil, false, roomsensor.CodeCursorInvalid.New()
	}
	if err = state.Check(initial.Endpoint, initial.KeyID, initial.Device, now); err != nil {
		return nil, false, err
	}
	state.Limit = cmp.Or(limit, state.Limit) // Without the parameter, as long as the previous page (decision 12).
	return state, false, nil
}

// Page builds the body of a list while its items are read (decisions 9 and 52).
type Page struct {
	Body  []byte
	State cursor.State // has the position of the last item
	Items int
	More  bool // there is a next page
	Cut   bool // there is one because of the limit of bytes

	tag     string // the entity tag of the body, once it is complete
	cursors *cursor.Sealer
	room    int // bytes of the body that leave room for the end of the envelope
}

// NewPage begins a page of at most maxBytes bytes in a buffer.
func NewPage(buffer []byte, cursors *cursor.Sealer, state *cursor.State, maxBytes int) *Page {
	sealed := cursors.Seal(state)
	return &Page{
		Body: BeginList(buffer[:0]), State: *state, cursors: cursors,
		room: maxBytes - len(EndList([]byte{'['}, &sealed)) + 1,
	}
}

// AddItem appends an item, or returns false if the page ends before it.
func AddItem[T any](p *Page, item *T, appendItem func([]byte, *T) []byte) bool {
	if p.More || p.Items == p.State.Limit {
		p.More = true
		return false
	}
	before := len(p.Body)
	if p.Items > 0 {
		p.Body = append(p.Body, ',')
	}
	p.Body = appendItem(p.Body, item)
	if p.Items > 0 && len(p.Body) > p.room {
		p.Body, p.More, p.Cut = p.Body[:before], true, true
		return false
	}
	p.Items++
	return true
}

// tagEpoch is the maximum age of the entity tag of a page with a cursor. It is half the lifetime of a cursor: a client
// that receives 304 until the tag changes still has the other half to use its cursor.
const tagEpoch = cursor.Lifetime / 2

// End completes the body. If there is a next page, the body has a cursor with the state, issued now. Cursors differ
// each time, so the entity tag is then that of the items, the key to which the cursor belongs, and half a day (decision
// 49).
func (p *Page) End(now time.Time) {
	if !p.More {
		p.Body = EndList(p.Body, nil)
		p.tag = EntityTag(p.Body)
		return
	}
	p.tag = EntityTag(p.Body, []byte(p.State.KeyID), strconv.AppendInt(nil, now.UnixNano()/int64(tagEpoch), 10))
	p.State.IssuedAt = now
	sealed := p.cursors.Seal(&p.State)
	p.Body = EndList(p.Body, &sealed)
}

// EndFeed completes the body of a page of the change feed (A5.2). It always has a cursor, issued now. Its entity tag is
// that of a page with a next page, and depends on caughtUp: the same items are followed by the same readings, whatever
// the cursor. more has the other members of the envelope, each after a comma; it may be empty.
func (p *Page) EndFeed(now time.Time, caughtUp bool, more []byte) {
	caught := strconv.AppendBool(nil, caughtUp)
	p.tag = EntityTag(p.Body, []byte(p.State.KeyID), caught, strconv.AppendInt(nil, now.UnixNano()/int64(tagEpoch), 10),
		more)
	p.State.IssuedAt = now
	sealed := p.cursors.Seal(&p.State)
	p.Body = EndList(p.Body, &sealed)
	p.Body = append(append(p.Body[:len(p.Body)-1], `,"caught_up":`...), caught...)
	p.Body = append(append(p.Body, more...), '}')
}

// BeginList and EndList append the envelope of every list (decision 9). The text of a cursor needs no escapes.

// BeginList begins the envelope.
func BeginList(dst []byte) []byte { return append(dst, `{"data":[`...) }

// EndList ends the envelope. next is the cursor of the next page, or nil for none.
func EndList(dst []byte, next *string) []byte {
	dst = append(dst, `],"next_cursor":`...)
	if next == nil {
		return append(dst, "null}"...)
	}
	dst = append(append(append(dst, '"'), *next...), '"')
	return append(dst, '}')
}
