package api

import (
	"context"
	"sync"
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
		var held []*share
		for range maxTeamScans {
			held = append(held, l.reserveNow(t, 1, 1), l.reserveNow(t, 2, 1))
		}
		_, err := l.reserve(t.Context(), testTeam(3), 1)
		var answer *roomsensor.Error
		require.ErrorAs(t, err, &answer)
		require.Equal(t, roomsensor.CodeOverloaded, answer.Code)
		held[0].release()
		_, err = l.reserve(t.Context(), testTeam(2), 1)
		require.ErrorAs(t, err, &answer, "the other team has its part")
		l.reserveNow(t, 3, 1)
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

// teamDevices are Devices of which each team has one with tags of some bytes. reads and begun count the reads, by team
// and in total.
type teamDevices struct {
	Devices
	tagBytes map[uuid.UUID]int
	reads    map[uuid.UUID]int
	wait     chan struct{} // each read receives from it, unless it is nil

	mu    sync.Mutex
	begun int
}

func (d *teamDevices) CurrentDevices(
	_ context.Context, teamID uuid.UUID, _ roomsensor.DeviceQuery, _ roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	d.mu.Lock()
	d.reads[teamID]++
	d.begun++
	d.mu.Unlock()
	if d.wait != nil {
		<-d.wait
	}
	tags := map[string]string{"": string(make([]byte, d.tagBytes[teamID]))}
	return []roomsensor.CurrentDevice{{Device: roomsensor.Device{ID: teamID, Metadata: tags}}}, nil
}

func (d *teamDevices) HourStats(
	context.Context, uuid.UUID, []uuid.UUID, roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	return map[uuid.UUID]roomsensor.Stats{}, nil
}

func newTestSnapshots(age time.Duration) (*snapshots, *teamDevices) {
	d := &teamDevices{tagBytes: map[uuid.UUID]int{}, reads: map[uuid.UUID]int{}}
	return newSnapshots(d, time.Now, age), d
}

// Snapshots take a limited number of bytes. Only the team that asked least recently loses its snapshot, and what a team
// had before does not count.
func TestSnapshotMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := newTestSnapshots(time.Minute)
		ask := func(team byte) int {
			_, err := s.of(t.Context(), testTeam(team))
			require.NoError(t, err)
			time.Sleep(time.Second) // The clock is the bubble's.
			return d.reads[testTeam(team)]
		}
		third := maxSnapshotBytes/snapshotTagFactor - snapshotDeviceBytes
		for team := range byte(4) {
			d.tagBytes[testTeam(team)] = third
		}
		for team := range byte(3) {
			require.Equal(t, 1, ask(team))
		}
		require.Equal(t, 1, ask(0))
		s.flights.Forget(testTeam(2).String())
		<-s.refresh(t.Context(), testTeam(2))
		for team, reads := range []int{1, 1, 2} {
			require.Equal(t, reads, ask(byte(team)), "a refresh evicts nothing")
		}
		require.Equal(t, 1, ask(3))
		require.Equal(t, 2, ask(2))
		require.Equal(t, 1, ask(1))
		require.Equal(t, 2, ask(0), "evicted by team 3")
	})
}

// A team that is too large is read again after five minutes only, and takes no memory.
func TestSnapshotRemembersLargeTeams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := newTestSnapshots(time.Second)
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

// Many teams that ask at the same moment leave connections for other requests.
func TestSnapshotRefreshesAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := newTestSnapshots(time.Minute)
		d.wait = make(chan struct{})
		for team := range byte(2 * maxRefreshes) {
			go func() { _, _ = s.of(t.Context(), testTeam(team)) }()
		}
		synctest.Wait()
		require.Equal(t, maxRefreshes, d.begun)
		d.wait <- struct{}{}
		synctest.Wait()
		require.Equal(t, maxRefreshes+1, d.begun)
		close(d.wait)
		synctest.Wait()
		require.Equal(t, 2*maxRefreshes, d.begun)
	})
}
