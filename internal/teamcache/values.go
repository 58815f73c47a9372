package teamcache

import (
	"container/list"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Entry is a value with what is needed to limit the memory of all values.
type Entry[V any] struct {
	Value *V
	Bytes int       // the memory that it takes, about
	Until time.Time // when it expires, unless it was read again
}

// Values keeps a value per team within a limit of memory. It is safe for concurrent use.
type Values[V any] struct {
	maxBytes int

	mu     sync.Mutex
	byTeam map[uuid.UUID]*list.Element // of used
	used   *list.List                  // of *kept[V], the most recently used at the front
	bytes  int
}

type kept[V any] struct {
	Entry[V]

	teamID uuid.UUID
}

// NewValues returns Values that take about maxBytes at most.
func NewValues[V any](maxBytes int) *Values[V] {
	return &Values[V]{maxBytes: maxBytes, byTeam: map[uuid.UUID]*list.Element{}, used: list.New()}
}

// Kept returns the value of a team, or nil.
func (v *Values[V]) Kept(teamID uuid.UUID) *V {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.byTeam[teamID]
	if e == nil {
		return nil
	}
	v.used.MoveToFront(e)
	return entry[V](e).Value
}

// swept is the number of least recently used entries that each Keep checks for expiry. More than one, so that an entry
// that expires late does not keep others in memory.
const swept = 8

// Keep stores a value, unless it takes more than a third of the memory, of which others need the rest. It evicts
// expired values and, if there are too many bytes, the least recently used ones, one by one.
func (v *Values[V]) Keep(teamID uuid.UUID, e Entry[V]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if before := v.byTeam[teamID]; before != nil {
		v.drop(before)
	}
	if 3*e.Bytes > v.maxBytes {
		return
	}
	v.byTeam[teamID] = v.used.PushFront(&kept[V]{e, teamID})
	v.bytes += e.Bytes
	now := time.Now()
	oldest := v.used.Back()
	for range min(swept, v.used.Len()-1) {
		next := oldest.Prev()
		if now.After(entry[V](oldest).Until) {
			v.drop(oldest)
		}
		oldest = next
	}
	for v.bytes > v.maxBytes {
		v.drop(v.used.Back())
	}
}

func (v *Values[V]) drop(e *list.Element) {
	dropped := entry[V](e)
	v.used.Remove(e)
	delete(v.byTeam, dropped.teamID)
	v.bytes -= dropped.Bytes
}

func entry[V any](e *list.Element) *kept[V] {
	return e.Value.(*kept[V]) //nolint:forcetypeassert // Keep stores no other type.
}
