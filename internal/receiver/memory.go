package receiver

import (
	"sync"
	"time"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	// DefaultMemory is the default memory of a receiver for requests, in bytes. With it, any traffic fits into a process
	// with 512 MiB: what the requests leave behind until the next collection takes as much again, and windows of zstd,
	// checks of uploads and the worker of the process take the rest.
	DefaultMemory = 128 << 20
	// A credential may take an eighth of the memory and its team a quarter, so that neither can take it from others.
	credentialPart, teamPart = 8, 4
	// A quarter of the memory is reserved for teams that take at most a 128th of it (1 MiB by default, 64 small requests),
	// so that a few teams cannot take all of it together.
	reservePart, smallPart = 4, 128

	// shareRetryAfter is the Retry-After of a request beyond a share, whose other requests end soon.
	shareRetryAfter = time.Second
)

// memoryBudget counts the bytes of all requests in memory: bodies, and the messages of their uploads. Beyond it,
// requests are refused, so that a fleet that comes back at the same moment cannot exhaust the memory of the process.
type memoryBudget struct {
	total int64

	mu   sync.Mutex
	used map[string]int64 // by the id of a credential or team, and in total; without zeros
}

func newMemoryBudget(total int64) *memoryBudget {
	return &memoryBudget{total: total, used: map[string]int64{}}
}

// usedTotal is the key of memoryBudget.used for all requests.
const usedTotal = ""

// memoryShare limits what several requests of one owner take together. One request alone may take more, so that a body
// of any allowed size passes.
type memoryShare struct {
	owner   string
	limit   int64
	refusal string // the message beyond the limit
}

// memory is what one request has reserved of the budget.
type memory struct {
	budget     *memoryBudget
	credential memoryShare
	team       memoryShare
	reserved   int64
}

// open returns the memory of a request of a key. The caller must close it.
func (b *memoryBudget) open(key *roomsensor.Key) *memory {
	return &memory{
		budget: b,
		credential: memoryShare{
			key.ID, b.total / credentialPart,
			"This credential has too many bytes of uploads in progress. Send fewer at the same time.",
		},
		team: memoryShare{
			key.TeamID.String(), b.total / teamPart,
			"Your team has too many bytes of uploads in progress. Send fewer at the same time.",
		},
	}
}

// reserve takes n bytes. Its error is overloaded if the credential or the team would have more than its share, or if
// there is no room for them.
func (m *memory) reserve(n int) error {
	b := m.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range [...]memoryShare{m.credential, m.team} {
		alone := b.used[s.owner] == m.reserved
		if b.used[s.owner]+int64(n) > s.limit && !alone {
			return httpedge.Overloaded(shareRetryAfter, s.refusal)
		}
	}
	room := b.total
	if b.used[m.team.owner]+int64(n) > b.total/smallPart {
		room -= b.total / reservePart
	}
	if b.used[usedTotal]+int64(n) > room {
		return httpedge.Overloaded(queueRetryAfter,
			"The service is busy with uploads. Send the request again after the seconds in Retry-After.")
	}
	m.add(int64(n))
	return nil
}

// release returns n bytes.
func (m *memory) release(n int) {
	m.budget.mu.Lock()
	defer m.budget.mu.Unlock()
	m.add(-int64(n))
}

// close returns everything.
func (m *memory) close() { m.release(int(m.reserved)) }

func (m *memory) add(n int64) {
	m.reserved += n
	for _, owner := range [...]string{m.credential.owner, m.team.owner, usedTotal} {
		if m.budget.used[owner] += n; m.budget.used[owner] == 0 {
			delete(m.budget.used, owner)
		}
	}
}

// inUse returns the bytes that all requests have reserved.
func (b *memoryBudget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used[usedTotal]
}
