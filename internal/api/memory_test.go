package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api/feed"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

func testTeam(n byte) uuid.UUID { return uuid.UUID{n} }

// Teams with all that they may have get no more, and leave a part for others. A request that waits in vain for shareWait is overloaded.
func TestReserve(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limiter            *fairshare.Limiter
		all, ofTeam, asked int
	}{
		"list_bytes": {newBodyLimiter(), maxBodies, maxTeamBodies, 2 * maxTeamBodies},
		"scans":      {newScanLimiter(), maxScans, maxTeamScans, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var refusal *roomsensor.Error
				var held []*fairshare.Held
				for range test.ofTeam / min(test.asked, test.ofTeam) {
					h, err := reserve(t.Context(), test.limiter, testTeam(98), test.asked, shareWait)
					require.NoError(t, err)
					held = append(held, h)
				}
				_, err := reserve(t.Context(), test.limiter, testTeam(98), 1, shareWait)
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, name+".team", refusal.Limit)
				for _, h := range held {
					h.Release()
				}

				began := time.Now()
				for i := range byte(test.all / min(test.asked, test.ofTeam)) {
					_, err := reserve(t.Context(), test.limiter, testTeam(i%byte(test.all/test.ofTeam)), test.asked, shareWait)
					require.NoError(t, err)
				}
				require.Equal(t, began, time.Now())
				_, err = reserve(t.Context(), test.limiter, testTeam(99), 1, shareWait)
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, shareRetryAfter, refusal.RetryAfter)
				require.Equal(t, shareWait, time.Since(began))
			})
		})
	}
}

// Of many requests for changes that are woken at once, those wait for their turn that have time left.
func TestFeedWaiterPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiter := (&feed.Feed{}).Waiter(roomsensor.Key{}, nil, maxWait*time.Second)
		require.Equal(t, maxWait*time.Second, patience(waiter))
		time.Sleep(maxWait * time.Second) // The clock is the bubble's.
		require.Equal(t, shareWait, patience(waiter), "as any other request")
	})
}

// teamDevices are Devices of which each team has one with tags of some bytes. reads counts the reads by team.
type teamDevices struct {
	Devices
	tagBytes map[uuid.UUID]int
	reads    map[uuid.UUID]int
}

func (d *teamDevices) CurrentTeam(
	_ context.Context, teamID uuid.UUID, _ roomsensor.DeviceQuery, _ time.Time,
) ([]roomsensor.CurrentDevice, error) {
	d.reads[teamID]++
	tags := map[string]string{"": string(make([]byte, d.tagBytes[teamID]))}
	return []roomsensor.CurrentDevice{{Device: roomsensor.Device{ID: teamID, Metadata: tags}}}, nil
}

func newTestSnapshots(t *testing.T, age time.Duration) (*snapshots, *teamDevices) {
	t.Helper()
	d := &teamDevices{tagBytes: map[uuid.UUID]int{}, reads: map[uuid.UUID]int{}}
	m, err := newMetrics(nil, nil)
	require.NoError(t, err)
	return newSnapshots(d, time.Now, age, requestTimeout, m), d
}

// A team that is too large is read again after five minutes only, and takes no memory.
func TestSnapshotRemembersLargeTeams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := newTestSnapshots(t, time.Second)
		d.tagBytes[testTeam(1)] = maxSnapshotBytes / snapshotTagFactor
		for range 300 {
			snap, err := s.of(t.Context(), testTeam(1))
			require.NoError(t, err)
			require.True(t, snap.partial)
			require.Zero(t, snap.bytes)
			_, err = s.of(t.Context(), testTeam(2)) // Its snapshots are refreshed, and drop old ones.
			require.NoError(t, err)
			synctest.Wait() // for the refresh
			require.Equal(t, 1, d.reads[testTeam(1)])
			time.Sleep(time.Second) // The clock is the bubble's.
		}
		synctest.Wait()
		d.tagBytes[testTeam(1)] = 1
		snap, err := s.of(t.Context(), testTeam(1))
		require.NoError(t, err)
		require.False(t, snap.partial)
		synctest.Wait()
	})
}

// GET /metrics of a team that is too large for a snapshot holds no scan while it waits for memory.
func TestMetricsWaitsForMemoryWithoutScan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		current, d := newTestSnapshots(t, time.Second)
		d.tagBytes[testTeam(1)] = maxSnapshotBytes / snapshotTagFactor
		s := &server{current: current, bodies: newBodyLimiter(), scans: newScanLimiter()}
		_, err := reserve(t.Context(), s.bodies, testTeam(1), maxTeamBodies, shareWait)
		require.NoError(t, err)
		go func() { _, err = s.currentDevices(t.Context(), testTeam(1), nil) }()
		synctest.Wait()
		require.Equal(t, 1, s.bodies.Waiting())
		require.Zero(t, s.scans.Used())
		time.Sleep(shareWait) // The clock is the bubble's.
		synctest.Wait()
		var refusal *roomsensor.Error
		require.ErrorAs(t, err, &refusal)
	})
}
