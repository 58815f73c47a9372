package cursor

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// The optional parts of a walk, as bits.
const (
	hasFrom = 1 << iota
	hasTo
	hasAssignment
)

// marshal is the compact form of a walk: integers as varints, times in
// microseconds, texts with their length before them.
func (w *Walk) marshal() []byte {
	b := make([]byte, 0, 160)
	b = append(b, byte(w.Endpoint), w.parts())
	b = appendText(b, w.KeyID)
	b = append(b, w.Device[:]...)
	b = appendTime(b, w.IssuedAt)
	b = binary.AppendVarint(b, int64(w.Limit))
	b = appendTags(b, w.Metadata)
	b = w.appendRequest(b)
	b = appendTime(b, w.Window.From)
	b = appendTime(b, w.Window.To)
	b = appendTime(b, w.At)
	return append(b, w.ID[:]...)
}

func (w *Walk) parts() (parts byte) {
	if w.Request.From != nil {
		parts |= hasFrom
	}
	if w.Request.To != nil {
		parts |= hasTo
	}
	if w.Assignment != nil {
		parts |= hasAssignment
	}
	return parts
}

func (w *Walk) appendRequest(b []byte) []byte {
	if w.Request.From != nil {
		b = appendTime(b, *w.Request.From)
	}
	if w.Request.To != nil {
		b = appendTime(b, *w.Request.To)
	}
	b = binary.AppendVarint(b, int64(w.Request.Last))
	if w.Assignment != nil {
		b = append(b, w.Assignment[:]...)
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

// unmarshal is the reverse of marshal.
func unmarshal(plain []byte) (*Walk, error) {
	r := reader{rest: plain}
	w := &Walk{Endpoint: Endpoint(r.byte())}
	parts := r.byte()
	w.KeyID = r.text()
	w.Device = r.id()
	w.IssuedAt = r.time()
	w.Limit = int(r.varint())
	w.Metadata = r.tags()
	r.request(w, parts)
	w.Window = roomsensor.Window{From: r.time(), To: r.time()}
	w.At = r.time()
	w.ID = r.id()
	if r.short || len(r.rest) > 0 {
		return nil, ErrCorrupted
	}
	return w, nil
}

// reader takes values off the front of rest. short is set once there was not
// enough; every further value is then zero.
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
func (r *reader) text() string  { return string(r.take(r.length())) }
func (r *reader) time() time.Time {
	return time.UnixMicro(r.varint()).UTC()
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.rest)
	r.take(width(n))
	return x
}

// length is a count of things that take a byte at least, each.
func (r *reader) length() int {
	x, n := binary.Uvarint(r.rest)
	r.take(width(n))
	if x > uint64(len(r.rest)) {
		return -1
	}
	return int(x) //nolint:gosec // No more than there are bytes.
}

// width makes a malformed varint one that is too long.
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

func (r *reader) request(w *Walk, parts byte) {
	if parts&hasFrom != 0 {
		from := r.time()
		w.Request.From = &from
	}
	if parts&hasTo != 0 {
		to := r.time()
		w.Request.To = &to
	}
	w.Request.Last = time.Duration(r.varint())
	if parts&hasAssignment != 0 {
		id := r.id()
		w.Assignment = &id
	}
}
