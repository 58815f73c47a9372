package cursor

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// The optional fields of a State, as bits.
const (
	hasFrom = 1 << iota
	hasTo
	hasAssignment
	hasNow
	hasIDs
	hasSent
)

// marshal encodes a State compactly: integers as varints, times in microseconds, texts after their length.
func (s *State) marshal() []byte {
	b := make([]byte, 0, 160)
	b = append(b, byte(s.Endpoint), s.parts())
	b = appendText(b, s.KeyID)
	b = append(b, s.Device[:]...)
	b = appendTime(b, s.IssuedAt)
	b = binary.AppendVarint(b, int64(s.Limit))
	b = appendTags(b, s.Filters)
	b = s.appendRequest(b)
	b = appendTime(b, s.Window.From)
	b = appendTime(b, s.Window.To)
	b = appendTime(b, s.At)
	b = append(b, s.ID[:]...)
	if !s.Now.IsZero() {
		b = appendTime(b, s.Now)
	}
	if s.IDs != nil {
		b = binary.AppendUvarint(b, uint64(len(s.IDs)))
		for _, id := range s.IDs {
			b = append(b, id[:]...)
		}
	}
	if s.Sent != nil {
		b = binary.AppendUvarint(b, uint64(len(s.Sent)))
		for _, key := range s.Sent {
			b = binary.BigEndian.AppendUint64(b, key)
		}
	}
	return b
}

func (s *State) parts() (parts byte) {
	if s.Request.From != nil {
		parts |= hasFrom
	}
	if s.Request.To != nil {
		parts |= hasTo
	}
	if s.Assignment != nil {
		parts |= hasAssignment
	}
	if !s.Now.IsZero() {
		parts |= hasNow
	}
	if s.IDs != nil {
		parts |= hasIDs
	}
	if s.Sent != nil {
		parts |= hasSent
	}
	return parts
}

func (s *State) appendRequest(b []byte) []byte {
	if s.Request.From != nil {
		b = appendTime(b, *s.Request.From)
	}
	if s.Request.To != nil {
		b = appendTime(b, *s.Request.To)
	}
	b = binary.AppendVarint(b, int64(s.Request.Last))
	if s.Assignment != nil {
		b = append(b, s.Assignment[:]...)
	}
	return b
}

func appendTime(b []byte, at time.Time) []byte {
	return binary.AppendVarint(b, at.UnixMicro())
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendTags(b []byte, tags map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(tags)))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		b = appendText(appendText(b, key), tags[key])
	}
	return b
}

// unmarshal decodes what marshal returned. Its error is ErrCorrupted.
func unmarshal(plain []byte) (*State, error) {
	r := reader{rest: plain}
	w := &State{Endpoint: Endpoint(r.byte())}
	parts := r.byte()
	w.KeyID = r.text()
	w.Device = r.id()
	w.IssuedAt = r.time()
	w.Limit = int(r.varint())
	w.Filters = r.tags()
	r.request(w, parts)
	w.Window = roomsensor.Window{From: r.time(), To: r.time()}
	w.At = r.time()
	w.ID = r.id()
	if parts&hasNow != 0 {
		w.Now = r.time()
	}
	if parts&hasIDs != 0 {
		w.IDs = list(&r, r.id)
	}
	if parts&hasSent != 0 {
		w.Sent = list(&r, r.key)
	}
	if r.short || len(r.rest) > 0 {
		return nil, ErrCorrupted
	}
	return w, nil
}

// reader reads values from the front of rest. short is set once rest was too short; all further values are then zero.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.short = nil, true
		return make([]byte, min(max(n, 0), len(uuid.Nil)))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte    { return r.take(1)[0] }
func (r *reader) id() uuid.UUID { return uuid.UUID(r.take(len(uuid.Nil))) }
func (r *reader) key() uint64   { return binary.BigEndian.Uint64(r.take(8)) } //nolint:mnd // 64 bits.
func (r *reader) text() string  { return string(r.take(r.length())) }
func (r *reader) time() time.Time {
	return time.UnixMicro(r.varint()).UTC()
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.rest)
	r.take(width(n))
	return x
}

// length reads a number of items, each of which takes at least one byte; -1 if rest is shorter.
func (r *reader) length() int {
	x, n := binary.Uvarint(r.rest)
	r.take(width(n))
	if x > uint64(len(r.rest)) {
		return -1
	}
	return int(x) //nolint:gosec // It is at most the number of bytes.
}

// width returns the size of a varint, or -1 for a malformed one, which take refuses.
func width(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

func (r *reader) tags() map[string]string {
	n := r.length()
	if n <= 0 {
		r.short = r.short || n < 0
		return nil
	}
	tags := make(map[string]string, n)
	for range n {
		key := r.text()
		tags[key] = r.text()
	}
	return tags
}

// list reads items after their number.
func list[T any](r *reader, item func() T) []T {
	n := r.length()
	if n < 0 {
		r.short = true
		return nil
	}
	items := make([]T, 0, n)
	for range n {
		items = append(items, item())
	}
	return items
}

func (r *reader) request(w *State, parts byte) {
	if parts&hasFrom != 0 {
		w.Request.From = new(r.time())
	}
	if parts&hasTo != 0 {
		w.Request.To = new(r.time())
	}
	w.Request.Last = time.Duration(r.varint())
	if parts&hasAssignment != 0 {
		w.Assignment = new(r.id())
	}
}
