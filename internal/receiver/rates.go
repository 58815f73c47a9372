package receiver

import (
	"math"
	"sync"
	"time"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// The default share of a credential (decision 53 a). Ten teams that send all the bytes that they may send more than a
// worker stores on two cores, some 20 MB per second: a single team that takes its share leaves most of that to others.
// A fleet of 100,000 devices needs a tenth of it.
const (
	DefaultRequestsPerSecond = 50
	DefaultBytesPerSecond    = 2 << 20
)

const (
	// teamRate is how many times the share of a credential its team has.
	teamRate = 2
	// burstSeconds is the time for which a credential or team that sends nothing saves its share.
	burstSeconds = 10
	// minSweep is the least number of buckets at which those that are full again are removed.
	minSweep = 1024
)

// rates limits what credentials and teams send per second (decision 53 a).
type rates struct {
	requests, bytes float64 // of a credential, per second
	now             func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket // by the id of a credential or team; a missing one is full
	sweepAt int                // number of buckets
}

func newRates(requestsPerSecond int, bytesPerSecond int64) *rates {
	return &rates{
		requests: float64(requestsPerSecond), bytes: float64(bytesPerSecond), now: time.Now,
		buckets: map[string]*bucket{}, sweepAt: minSweep,
	}
}

// bucket is what a credential or team may send now. It fills up over time.
type bucket struct {
	times           float64 // the share of a credential
	requests, bytes float64 // bytes below 0 are a debt
	at              time.Time
}

// admit counts a request. Its error is rate_limit_exceeded, and the request is not counted, if there is no request left
// in the share of the credential or team, or if either owes bytes.
func (r *rates) admit(key *roomsensor.Key) error {
	return r.take(key, 1, 0)
}

// charge counts the bytes of a body. Its error is rate_limit_exceeded, and they are not counted, if the credential or
// team owes bytes already.
func (r *rates) charge(key *roomsensor.Key, bytes int) error {
	return r.take(key, 0, float64(bytes))
}

// add counts more bytes of a body that was charged. Of a team, one such body at a time is being decompressed, so that a
// debt is at most two bodies: this one, and one that came as it was.
func (r *rates) add(key *roomsensor.Key, bytes int) {
	if bytes <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.owners(key, r.now()) {
		b.bytes -= float64(bytes)
	}
}

func (r *rates) take(key *roomsensor.Key, requests, bytes float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.sweep(now)
	owners := r.owners(key, now)
	var wait float64 // in seconds
	for _, b := range owners {
		wait = max(wait, (requests-b.requests)/(r.requests*b.times), -b.bytes/(r.bytes*b.times))
	}
	if wait > 0 {
		seconds := time.Duration(math.Ceil(wait)) * time.Second
		return &roomsensor.Error{
			Code: roomsensor.CodeRateLimitExceeded, RetryAfter: seconds, Limit: "rate",
			Message: "This credential or its team sends more than its share. Wait " + httpedge.Wait(seconds) +
				", and put more uploads into fewer requests. Nothing of the request was stored.",
		}
	}
	for _, b := range owners {
		b.requests -= requests
		b.bytes -= bytes
	}
	return nil
}

// owners returns the buckets of a credential and its team as they are now.
func (r *rates) owners(key *roomsensor.Key, now time.Time) [2]*bucket {
	return [...]*bucket{r.fill(key.ID, 1, now), r.fill(key.TeamID.String(), teamRate, now)}
}

// fill returns the bucket of an owner as it is now.
func (r *rates) fill(owner string, times float64, now time.Time) *bucket {
	b, ok := r.buckets[owner]
	if !ok {
		b = &bucket{times: times, requests: math.Inf(1), bytes: math.Inf(1), at: now}
		r.buckets[owner] = b
	}
	r.refill(b, now)
	return b
}

func (r *rates) refill(b *bucket, now time.Time) {
	gain := b.times * now.Sub(b.at).Seconds()
	b.requests = min(b.requests+gain*r.requests, b.times*burstSeconds*r.requests)
	b.bytes = min(b.bytes+gain*r.bytes, b.times*burstSeconds*r.bytes)
	b.at = now
}

// sweep removes the buckets that are full again, whenever their number has doubled.
func (r *rates) sweep(now time.Time) {
	if len(r.buckets) < r.sweepAt {
		return
	}
	for owner, b := range r.buckets {
		r.refill(b, now)
		if b.requests == b.times*burstSeconds*r.requests && b.bytes == b.times*burstSeconds*r.bytes {
			delete(r.buckets, owner)
		}
	}
	r.sweepAt = max(minSweep, 2*len(r.buckets))
}
