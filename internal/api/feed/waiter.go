package feed

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

// Waiter is a request that may wait for a change.
type Waiter struct {
	feed    *Feed
	key     roomsensor.Key
	devices []uuid.UUID // ascending; nil means all devices of the team
	until   time.Time
	admits  bool // the limits admit the request
	held    *fairshare.Held
	woken   chan error // gets nil for a change, or the reason why the request ends
}

// Waiter returns a waiter that may wait for a time. The caller must call End.
func (f *Feed) Waiter(key roomsensor.Key, devices []uuid.UUID, wait time.Duration) *Waiter {
	return &Waiter{feed: f, key: key, devices: devices, until: time.Now().Add(wait), admits: wait > 0}
}

// MayWait reports whether the request may be held.
func (w *Waiter) MayWait() bool {
	if !w.admits || !time.Now().Before(w.until) {
		return false
	}
	w.admits = w.feed.admit(w)
	return w.admits
}

// Left returns the rest of the time for which the request may wait; it may be negative.
func (w *Waiter) Left() time.Duration { return time.Until(w.until) }

// admit adds a waiter, unless too many wait or the process stops. One that is not admitted gets its response at once.
func (f *Feed) admit(w *Waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped || f.waiting[w] {
		return !f.stopped
	}
	var err error
	if w.held, err = f.limiter.Try(fairshare.Owner{Team: w.key.TeamID, Key: w.key.ID}, 1); err != nil {
		return false
	}
	w.woken = make(chan error, 1)
	f.waiting[w] = true
	return true
}

// Wait waits until a device may have changed after a time, the request has waited long enough, or the process stops.
// Its error is the response if the key was revoked or has expired (A5.11).
func (w *Waiter) Wait(ctx context.Context, after time.Time) error {
	until := w.until
	if expiry := w.key.ExpiresAt; expiry != nil {
		if at := time.Now().Add(expiry.Sub(w.feed.now())); at.Before(until) {
			until = at
		}
	}
	if w.feed.watch(ctx, after) {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.woken:
			if err != nil {
				return err
			}
		case <-timer.C:
		}
	}
	if w.key.ExpiresAt != nil && !w.feed.now().Before(*w.key.ExpiresAt) {
		return roomsensor.CodeAPIKeyExpired.New()
	}
	return nil
}

// End removes the waiter. Without waiters, run ends.
func (w *Waiter) End() {
	f := w.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[w] {
		delete(f.waiting, w)
		w.held.Release()
	}
	if len(f.waiting) == 0 {
		f.endRun()
	}
}

// wake sends a reason, unless there is one already.
func (w *Waiter) wake(reason error) {
	select {
	case w.woken <- reason:
	default:
	}
}

// wants reports whether the request is about one of some devices.
func (w *Waiter) wants(changed []uuid.UUID) bool {
	if w.devices == nil {
		return len(changed) > 0
	}
	return slices.ContainsFunc(changed, func(id uuid.UUID) bool {
		_, found := slices.BinarySearchFunc(w.devices, id, roomsensor.CompareIDs)
		return found
	})
}
