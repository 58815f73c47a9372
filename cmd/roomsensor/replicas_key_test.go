package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// verdicts are the answers to a key that is used without a pause until every replica refuses it.
type verdicts struct {
	mu       sync.Mutex
	lastGood time.Time // when the last request was sent that passed
	refusal  string
}

func (v *verdicts) note(sent time.Time, got answer) (refused bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if got.status == http.StatusOK {
		if sent.After(v.lastGood) {
			v.lastGood = sent
		}
		return false
	}
	v.refusal = got.body
	return true
}

// useUntilRefused sends requests to both replicas until each has refused some in a row.
func (f *fleet) useUntilRefused(key string) *verdicts {
	v := &verdicts{}
	var users sync.WaitGroup
	for _, r := range f.replicas {
		users.Go(func() {
			ticker := time.NewTicker(pollEvery)
			defer ticker.Stop()
			deadline := time.Now().Add(bearable)
			for refused := 0; refused < 3 && time.Now().Before(deadline); <-ticker.C {
				sent := time.Now()
				if v.note(sent, r.get("/team", key)) {
					refused++
				}
			}
		})
	}
	users.Wait()
	return v
}

// Decision 24: a revoke bites within 5 seconds on every replica, also where the key is in use all the time.
func TestARevokeBitesOnEveryReplica(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.11", "spec 5, rule 6, revoked")
	f := launch(t)
	for _, r := range f.replicas {
		require.Equal(t, http.StatusOK, r.get("/team", f.key).status)
	}
	revoked := make(chan time.Time, 1)
	go func() {
		f.do("key", "revoke", f.keyID)
		revoked <- time.Now()
	}()
	v := f.useUntilRefused(f.key)
	after := v.lastGood.Sub(<-revoked)
	t.Logf("the last request that passed was sent %s after the revoke", after)
	require.Contains(t, v.refusal, string(roomsensor.CodeAPIKeyRevoked))
	require.Less(t, after, 5*time.Second)
}

// Decision 24: an expiry bites at once.
func TestAnExpiryBitesAtOnce(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24.12", "spec 5, rule 6, expired")
	f := launch(t)
	expires := time.Now().Add(2 * time.Second).Truncate(time.Microsecond)
	_, key := f.newKey("--expires-at", roomsensor.FormatTime(expires))
	v := f.useUntilRefused(key)
	require.Contains(t, v.refusal, string(roomsensor.CodeAPIKeyExpired))
	require.False(t, v.lastGood.After(expires), "sent %s after the expiry, and passed", v.lastGood.Sub(expires))
}
