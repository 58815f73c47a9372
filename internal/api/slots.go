package api

import (
	"sync"
	"time"

	"roomsensor/internal/roomsensor"
)

// slotRetryAfter is when an export that found no slot may try again.
const slotRetryAfter = 10 * time.Second

// slots caps how many exports run at once, per key and in all (decision 32).
type slots struct {
	perKey, inAll int

	mu    sync.Mutex
	taken map[string]int
	total int
}

func newSlots(perKey, inAll int) *slots {
	return &slots{perKey: perKey, inAll: inAll, taken: map[string]int{}}
}

// take reserves a slot until release is called; beyond the cap it is overloaded.
func (s *slots) take(keyID string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[keyID] >= s.perKey || s.total >= s.inAll {
		refusal := roomsensor.NewError(roomsensor.CodeOverloaded, "",
			"Too many exports run at once. Try again after the seconds in Retry-After.")
		refusal.RetryAfter = slotRetryAfter
		return nil, refusal
	}
	s.taken[keyID]++
	s.total++
	return func() { s.give(keyID) }, nil
}

func (s *slots) give(keyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.taken[keyID]--; s.taken[keyID] == 0 {
		delete(s.taken, keyID)
	}
}
