package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
)

// manyTeams are Devices of which each team has one, with the id of the team. Every read takes a second. failing is the
// number of teams from which on a read fails.
type manyTeams struct {
	Devices
	failing int

	mu              sync.Mutex
	together, alone []int // the number of teams of each read
}

func (d *manyTeams) read(reads *[]int, teams int) error {
	d.mu.Lock()
	*reads = append(*reads, teams)
	d.mu.Unlock()
	time.Sleep(time.Second) // The clock is the bubble's.
	if d.failing > 0 && teams >= d.failing {
		return errors.New("unavailable")
	}
	return nil
}

func (d *manyTeams) CurrentTeams(
	_ context.Context, teamIDs []uuid.UUID, _ roomsensor.DeviceQuery, _ roomsensor.Window,
) (teams [][]roomsensor.CurrentDevice, err error) {
	for _, id := range teamIDs {
		teams = append(teams, []roomsensor.CurrentDevice{{Device: roomsensor.Device{ID: id}}})
	}
	return teams, d.read(&d.together, len(teamIDs))
}

func (d *manyTeams) CurrentTeam(
	_ context.Context, teamID uuid.UUID, _ roomsensor.DeviceQuery, _ roomsensor.Window,
) ([]roomsensor.CurrentDevice, time.Time, error) {
	readAt := time.Now()
	return []roomsensor.CurrentDevice{{Device: roomsensor.Device{ID: teamID}}}, readAt, d.read(&d.alone, 1)
}

// askAll requests the snapshots of some teams at the same time.
func askAll(t *testing.T, s *snapshots, teams byte) {
	t.Helper()
	var group errgroup.Group
	for n := range teams {
		group.Go(func() error {
			snap, err := s.of(t.Context(), testTeam(n))
			if err == nil && (len(snap.devices) != 1 || snap.devices[0].ID != testTeam(n)) {
				return fmt.Errorf("the snapshot of another team: %v", snap.devices)
			}
			return err
		})
		synctest.Wait()
	}
	require.NoError(t, group.Wait())
}

// Teams that are asked for while others are read are read together.
func TestSnapshotsAreReadTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &manyTeams{}
		m, err := newMetrics(nil, nil)
		require.NoError(t, err)
		s := newSnapshots(d, time.Now, 0, requestTimeout, m)
		askAll(t, s, 20)
		reads := []int{1, 1, 1, maxTeamsTogether, 1}
		require.ElementsMatch(t, reads, d.together) // Those at the same time are in any order.
		require.Empty(t, d.alone)
		time.Sleep(10 * time.Second) // The clock is the bubble's. All snapshots are too old afterwards.
		askAll(t, s, 20)
		require.ElementsMatch(t, append(reads, reads...), d.together)
	})
}

// If a read of several teams fails, one of them may be the reason: the others are read alone.
func TestSnapshotsOfTeamsThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &manyTeams{failing: 2}
		m, err := newMetrics(nil, nil)
		require.NoError(t, err)
		s := newSnapshots(d, time.Now, 0, requestTimeout, m)
		askAll(t, s, 6)
		require.Equal(t, []int{1, 1, 1, 3}, d.together)
		require.Equal(t, []int{1, 1, 1}, d.alone)
		d.failing = 1
		_, err = s.of(t.Context(), testTeam(9))
		require.ErrorContains(t, err, "unavailable")
	})
}

// slowTeam are Devices of a team that must be read alone, which takes longer than a request waits.
type slowTeam struct {
	Devices
	together, alone atomic.Int32 // the number of reads
}

func (d *slowTeam) CurrentTeams(
	context.Context, []uuid.UUID, roomsensor.DeviceQuery, roomsensor.Window,
) ([][]roomsensor.CurrentDevice, error) {
	d.together.Add(1)
	return make([][]roomsensor.CurrentDevice, 1), nil
}

func (d *slowTeam) CurrentTeam(
	_ context.Context, teamID uuid.UUID, _ roomsensor.DeviceQuery, _ roomsensor.Window,
) ([]roomsensor.CurrentDevice, time.Time, error) {
	d.alone.Add(1)
	time.Sleep(8 * time.Second) // The clock is the bubble's.
	return []roomsensor.CurrentDevice{{Device: roomsensor.Device{ID: teamID}}}, time.Now(), nil
}

// The read of a team goes on when those who asked have left, and the next ones wait for it instead of starting another.
func TestSnapshotOfASlowTeam(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &slowTeam{}
		m, err := newMetrics(nil, nil)
		require.NoError(t, err)
		s := newSnapshots(d, time.Now, 0, 3*time.Second, m)
		for range 2 {
			_, err := s.of(t.Context(), testTeam(1))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		snap, err := s.of(t.Context(), testTeam(1))
		require.NoError(t, err)
		require.Len(t, snap.devices, 1)
		require.Equal(t, int32(1), d.together.Load())
		require.Equal(t, int32(1), d.alone.Load())
	})
}
