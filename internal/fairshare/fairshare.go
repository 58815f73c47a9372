// Package fairshare limits what keys, teams and all of them together hold of a resource at the same time, such as
// requests in progress or bytes of memory. The log names the limit that refuses a request.
package fairshare

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Remaining is a limit of teams: as many as remain free. A team gets half of all if it is alone, and never the last one
// that another team needs.
const Remaining = -1

// Limit is the limit of the requests of each key, of each team, or of all.
type Limit struct {
	Most       int           // that they hold together; 0 means unlimited
	Waiting    int           // that wait at the same time; 0 means the default of the level, see maxWaiting
	RetryAfter time.Duration // of a refusal
	Message    string        // of a refusal; if it is empty, refusals are those of Config.Total
}

// Config is the configuration of a Limiter. The limits apply in the order of their fields.
type Config struct {
	Name             string // in the log: exports is limit=exports.key, exports.team or exports.total
	Key, Team, Total Limit
	// Alone lets a request hold more than the limits of its key and team while others of these hold nothing.
	Alone bool
	// Reserve is the part of Total for teams that hold at most Small.
	Reserve, Small int
}

// The levels of limits.
const (
	ofKey = iota
	ofTeam
	ofAll
)

// maxWaiting is the default of the number of requests that wait, by level. A request that waits keeps its URL and
// headers, of up to 64 KB, and a goroutine: all of them take 130 MB at most.
var maxWaiting = [...]int{ofKey: 64, ofTeam: 128, ofAll: 1024}

// Owner is for whom a request holds something.
type Owner struct {
	Team uuid.UUID
	Key  string // id of a key or a person
}

// account is a key, a team or all of them.
type account struct {
	Owner

	level int
}

// Limiter limits what requests hold of a resource. It is safe for concurrent use.
type Limiter struct {
	cfg     Config
	mu      sync.Mutex
	byWhom  map[account]int // without zeros
	waiting []*Held         // in the order of arrival
}

// Held is what one request holds. Only one goroutine may use it at a time.
type Held struct {
	limiter  *Limiter
	accounts [ofAll + 1]account
	amount   int
	wanted   int           // more, of a request that waits
	granted  chan struct{} // closed when it holds that
}

// New returns a Limiter.
func New(cfg Config) *Limiter { return &Limiter{cfg: cfg, byWhom: map[account]int{}} }

// Open returns what a request of an owner holds, which is nothing yet.
func (l *Limiter) Open(o Owner) *Held {
	accounts := [...]account{{Owner{Key: o.Key}, ofKey}, {Owner{Team: o.Team}, ofTeam}, {level: ofAll}}
	return &Held{limiter: l, accounts: accounts}
}

// Try lets a request hold an amount until it is released. It does not wait: its error is overloaded beyond a limit.
func (l *Limiter) Try(o Owner, amount int) (*Held, error) {
	h := l.Open(o)
	return h, h.Grow(amount)
}

// Acquire is Try for a request that waits in the order of arrival until it may hold the amount. It holds nothing
// meanwhile. Its error is overloaded when ctx ends, and at once if too many requests wait already.
func (l *Limiter) Acquire(ctx context.Context, o Owner, amount int) (*Held, error) {
	h := l.Open(o)
	h.wanted, h.granted = amount, make(chan struct{})
	l.mu.Lock()
	if h.refusal(amount) == nil {
		h.add(amount)
		l.mu.Unlock()
		return h, nil
	}
	if err := h.tooManyWaiting(); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.waiting = append(l.waiting, h)
	l.mu.Unlock()
	select {
	case <-h.granted:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.waiting, h); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			return nil, h.refusal(amount)
		}
	}
	return h, nil
}

// grant admits all requests that no limit refuses any more. One that needs more than remains does not hold up those
// behind it.
func (l *Limiter) grant() {
	l.waiting = slices.DeleteFunc(l.waiting, func(h *Held) bool {
		if h.refusal(h.wanted) != nil {
			return false
		}
		h.add(h.wanted)
		close(h.granted)
		return true
	})
}

// Waiting returns how many requests wait.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Used returns what all requests hold.
func (l *Limiter) Used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byWhom[account{level: ofAll}]
}

// Grow holds an amount more. Its error is overloaded, and nothing changes, beyond a limit.
func (h *Held) Grow(amount int) error {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	if refusal := h.refusal(amount); refusal != nil {
		return refusal
	}
	h.add(amount)
	return nil
}

// Keep gives back all but an amount. It changes nothing if the request holds less.
func (h *Held) Keep(amount int) {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	if amount < h.amount {
		h.add(amount - h.amount)
		h.limiter.grant()
	}
}

// Shrink gives back an amount.
func (h *Held) Shrink(amount int) { h.Keep(h.amount - amount) }

// Release gives back everything. It may be called several times.
func (h *Held) Release() { h.Keep(0) }

func (h *Held) add(amount int) {
	h.amount += amount
	for _, a := range h.accounts {
		if h.limiter.byWhom[a] += amount; h.limiter.byWhom[a] == 0 {
			delete(h.limiter.byWhom, a)
		}
	}
}

// tooManyWaiting returns why the request may not wait, or nil.
func (h *Held) tooManyWaiting() error {
	cfg := &h.limiter.cfg
	for level, limit := range cfg.limits() {
		most := cmp.Or(limit.Waiting, maxWaiting[level])
		if h.accounts[level].Owner == (Owner{}) && level != ofAll {
			continue // The request has no key or no team.
		}
		waiting := 0
		for _, w := range h.limiter.waiting {
			if w.accounts[level] == h.accounts[level] {
				waiting++
			}
		}
		if waiting >= most {
			return cfg.refuse(level, limit, "_waiting")
		}
	}
	return nil
}

// limits returns the limits by level.
func (c *Config) limits() [ofAll + 1]Limit { return [...]Limit{c.Key, c.Team, c.Total} }

// refuse returns the error of a limit.
func (c *Config) refuse(level int, limit Limit, suffix string) *roomsensor.Error {
	if limit.Message == "" {
		limit = c.Total
	}
	return &roomsensor.Error{
		Code: roomsensor.CodeOverloaded, Message: limit.Message, RetryAfter: limit.RetryAfter,
		Limit: c.Name + [...]string{".key", ".team", ".total"}[level] + suffix,
	}
}

// refusal returns why the request may not hold an amount more, or nil.
func (h *Held) refusal(amount int) *roomsensor.Error {
	cfg, used := &h.limiter.cfg, h.limiter.byWhom
	for level, limit := range cfg.limits() {
		most, usedHere := limit.Most, used[h.accounts[level]]
		switch {
		case most == Remaining:
			most = cfg.Total.Most - used[h.accounts[ofAll]]
		case level == ofAll && used[h.accounts[ofTeam]]+amount > cfg.Small:
			most -= cfg.Reserve
		}
		if limit.Most == 0 || usedHere+amount <= most || cfg.Alone && level != ofAll && usedHere == h.amount {
			continue
		}
		return cfg.refuse(level, limit, "")
	}
	return nil
}
