package processes

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/test/ledger"
)

// shortFleet returns the units of a short trial: those of CreateFleet, with one swap per team.
func shortFleet(o Options, now time.Time) (units []*ledger.Unit) {
	for i := range o.Units {
		id := fmt.Sprintf("dev:%d", i+1)
		units = append(units, &ledger.Unit{HardwareID: id, Team: i % o.Teams, Device: uuid.NewSHA1(uuid.Nil, []byte(id))})
	}
	for i, u := range units[:o.Teams] {
		next := *u
		next.HardwareID, next.From = fmt.Sprintf("dev:%d", o.Units+i+1), now.AddDate(0, 0, -38)
		u.To = next.From
		units = append(units, &next)
	}
	return units
}

// TestShortRequests checks for 366 seeds, from the requests alone, what TestShortTrial requires: requests that are
// retried until they are confirmed contain enough distinct readings, a reject, and an upload that is sent twice. There
// is also a request that the receiver refuses.
func TestShortRequests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for seed := uint64(1); seed <= 366; seed++ {
		o := Short(seed)
		requests, err := ledger.Make(ledger.Options{
			Seed: seed, Readings: o.Readings, Span: o.Burst, Now: now, Teams: o.Teams, Units: shortFleet(o, now),
		})
		require.NoError(t, err, "seed %d", seed)
		rows, rejects, repeats, refused := countGuaranteed(requests)
		require.GreaterOrEqual(t, rows, o.Readings, "seed %d", seed)
		require.Positive(t, rejects, "seed %d", seed)
		require.Positive(t, repeats, "seed %d", seed)
		require.Positive(t, refused, "seed %d", seed)
	}
}

// countGuaranteed counts what the requests that are retried until they are confirmed contain, and the refused requests.
func countGuaranteed(requests []*ledger.Request) (rows, rejects, repeats, refused int) {
	keys, sent := map[ledger.Key]bool{}, map[int]int{}
	for _, r := range requests {
		if r.InvalidLine != "" {
			refused++
			continue
		}
		if r.Abandoned {
			continue
		}
		for _, u := range r.Uploads {
			if u.Reject != "" {
				rejects++
			}
			if sent[u.ID]++; sent[u.ID] == 2 {
				repeats++
			}
			for _, m := range u.Readings {
				keys[ledger.KeyOf(u.Unit.Device, m.Bucket())] = true
			}
		}
	}
	return len(keys), rejects, repeats, refused
}
