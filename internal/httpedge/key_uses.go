package httpedge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/panics"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// keyUseInterval is the interval at which new uses are stored. A new key shows its first use soon.
	keyUseInterval = 10 * time.Second
	// keyUsePrecision is the precision of stored uses: each key is stored once in each minute of the clock at most.
	keyUsePrecision = time.Minute
	// maxKeyUses bounds the memory of KeyUses, at about 400 bytes per key. The uses of other keys are not recorded.
	maxKeyUses = 10_000
	// keyUseBatch is the number of keys of one statement, which locks their rows.
	keyUseBatch = 1_000
	// keyUseTimeout bounds one statement, also the last ones of a process that stops.
	keyUseTimeout = 2 * time.Second
	// maxClient is the number of bytes that are kept of a User-Agent.
	maxClient = 100
)

// KeyUses records when keys were last used, and by which client. Requests only note a use in memory, and Run stores the
// last one of each key. If it cannot, it keeps them for the next attempt.
type KeyUses struct {
	store func(context.Context, []roomsensor.KeyUse) error
	now   func() time.Time
	log   zerolog.Logger

	mu   sync.Mutex
	byID map[string]*noticedUse

	failed bool // the last attempt; only Run uses it
}

// noticedUse is the last use of a key since the process started.
type noticedUse struct {
	at     time.Time
	agent  string    // the beginning of the User-Agent, as the client sent it
	stored time.Time // time of the last use that was stored
}

// NewKeyUses returns a KeyUses that stores uses of distinct keys with a function.
func NewKeyUses(
	store func(context.Context, []roomsensor.KeyUse) error, now func() time.Time, log zerolog.Logger,
) *KeyUses {
	return &KeyUses{store: store, now: now, log: log, byID: map[string]*noticedUse{}}
}

// Record notes that a request used a key. It does nothing if u is nil.
func (u *KeyUses) Record(keyID string, r *http.Request) {
	if u == nil {
		return
	}
	agent := r.UserAgent()
	agent = agent[:min(len(agent), 2*maxClient)]
	u.mu.Lock()
	defer u.mu.Unlock()
	use, ok := u.byID[keyID]
	if !ok {
		if len(u.byID) == maxKeyUses {
			return
		}
		use = &noticedUse{}
		u.byID[strings.Clone(keyID)] = use
	}
	use.at = u.now()
	if use.agent != agent {
		use.agent = strings.Clone(agent) // agent is a part of all headers of the request.
	}
}

// Run stores the recorded uses every keyUseInterval, and once more when ctx ends.
func (u *KeyUses) Run(ctx context.Context) {
	retry.Every(ctx, keyUseInterval, u.storeDue)
	u.storeDue(context.WithoutCancel(ctx))
}

// storeDue stores the uses that are due, in statements of up to keyUseBatch keys. After a statement that failed, the
// others wait for the next attempt.
func (u *KeyUses) storeDue(ctx context.Context) {
	for batch := range slices.Chunk(u.due(), keyUseBatch) {
		err := panics.Recover(func() error {
			ctx, cancel := context.WithTimeout(ctx, keyUseTimeout)
			defer cancel()
			return u.store(ctx, batch)
		})
		if err != nil {
			if !u.failed && ctx.Err() == nil {
				u.log.Warn().Err(err).Msg("could not store the last use of keys, retrying")
			}
			u.failed = true
			return
		}
		u.failed = false
		u.setStored(batch)
	}
}

// due returns, by key, the uses that are not yet stored for their minute. It forgets keys whose uses are stored and
// that were not used for a minute.
func (u *KeyUses) due() (due []roomsensor.KeyUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	forgotten := u.now().Add(-keyUsePrecision)
	for id, use := range u.byID {
		switch {
		case use.at.Truncate(keyUsePrecision).After(use.stored.Truncate(keyUsePrecision)):
			due = append(due, roomsensor.KeyUse{KeyID: id, At: use.at, Client: Shown(use.agent, maxClient)})
		case use.at.Before(forgotten):
			delete(u.byID, id)
		}
	}
	slices.SortFunc(due, func(a, b roomsensor.KeyUse) int { return strings.Compare(a.KeyID, b.KeyID) })
	return due
}

func (u *KeyUses) setStored(batch []roomsensor.KeyUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range batch {
		if use, ok := u.byID[batch[i].KeyID]; ok {
			use.stored = batch[i].At
		}
	}
}
