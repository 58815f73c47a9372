package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func testTeam(n byte) uuid.UUID { return uuid.UUID{n} }

func newTestBodyLimiter() *shareLimiter {
	return newBodyLimiter(prometheus.NewGauge(prometheus.GaugeOpts{Name: "bytes"}))
}

// reserveNow reserves bytes for which there must be room.
func (l *shareLimiter) reserveNow(t *testing.T, team byte, bytes int) *share {
	t.Helper()
	began := time.Now()
	share, err := l.reserve(t.Context(), testTeam(team), bytes)
	require.NoError(t, err)
	require.Equal(t, began, time.Now(), "it does not wait")
	return share
}

// TestScanLimiter checks that a team leaves room for the pages of others, and that requests wait for one another.
func TestScanLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newScanLimiter(prometheus.NewGauge(prometheus.GaugeOpts{Name: "scans"}))
		const teams = maxScans / maxTeamScans
		var held []*share
		for team := range byte(teams) {
			for range maxTeamScans {
				held = append(held, l.reserveNow(t, team, 1))
			}
		}
		_, err := l.reserve(t.Context(), testTeam(teams), 1)
		var answer *roomsensor.Error
		require.ErrorAs(t, err, &answer)
		require.Equal(t, roomsensor.CodeOverloaded, answer.Code)
		held[0].release()
		_, err = l.reserve(t.Context(), testTeam(1), 1)
		require.ErrorAs(t, err, &answer, "the other team has its part")
		l.reserveNow(t, teams, 1)
	})
}

// Of many requests for changes that are woken at once, those wait for their turn that have time left.
func TestFeedWaiterPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newScanLimiter(prometheus.NewGauge(prometheus.GaugeOpts{Name: "scans"}))
		for range maxTeamScans {
			l.reserveNow(t, 1, 1)
		}
		waiter := (&feed{}).waiter(roomsensor.Key{}, nil, maxWait*time.Second)
		began := time.Now()
		_, err := l.reserveWithin(t.Context(), testTeam(1), 1, waiter.patience())
		require.Error(t, err)
		require.Equal(t, maxWait*time.Second, time.Since(began))
		require.Equal(t, shareWait, waiter.patience(), "as any other request")
	})
}

func TestBodyLimiter(t *testing.T) {
	t.Parallel()
	t.Run("a team waits for its own requests, and others do not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := newTestBodyLimiter()
			held := l.reserveNow(t, 1, maxTeamBodies-1)
			second := make(chan *share)
			go func() {
				share, _ := l.reserve(t.Context(), testTeam(1), 2)
				second <- share
			}()
			synctest.Wait()
			l.reserveNow(t, 1, 1).release() // It needs less than the one that waits.
			l.reserveNow(t, 2, maxTeamBodies).release()
			require.Empty(t, second)
			held.shrink(maxTeamBodies - 2)
			(<-second).release()
			held.release()
			held.release() // A second release changes nothing.
			require.Zero(t, l.held)
			require.Empty(t, l.byTeam)
		})
	})
	t.Run("all teams share the whole, and a request that waits in vain is overloaded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := newTestBodyLimiter()
			for team := range byte(maxBodies / maxTeamBodies) {
				l.reserveNow(t, team, 2*maxTeamBodies) // Not more than a team may hold.
			}
			began := time.Now()
			_, err := l.reserve(t.Context(), testTeam(9), 1)
			require.Equal(t, shareWait, time.Since(began))
			var refusal *roomsensor.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, roomsensor.CodeOverloaded, refusal.Code)
			require.NotZero(t, refusal.RetryAfter)

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = l.reserve(ctx, testTeam(9), 1)
			require.Error(t, err)
			require.Equal(t, shareWait+time.Second, time.Since(began))
			require.Empty(t, l.waiting)
			require.Equal(t, maxBodies, l.held)
		})
	})
}

// teamDevices are Devices of which each team has one with tags of some bytes. reads counts the reads by team.
type teamDevices struct {
	Devices
	tagBytes map[uuid.UUID]int
	reads    map[uuid.UUID]int
}

func (d *teamDevices) CurrentTeam(
	_ context.Context, teamID uuid.UUID, _ roomsensor.DeviceQuery, _ roomsensor.Window,
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
