package api

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"roomsensor/internal/roomsensor"
)

const (
	// snapshotAge is how far /devices/current may lag (decision 43).
	snapshotAge = time.Second
	// closedAges is how many times as long the sums of hours that are over are
	// kept: 30 seconds, half of what a late reading may take to show in them
	// (decision 17).
	closedAges = 30
	// snapshotRead bounds one read, which many requests may wait for.
	snapshotRead = 5 * time.Second
	// mostInSnapshot is the largest team whose snapshot is kept; a larger one is
	// read page by page.
	mostInSnapshot = 10_000
	// mostInSnapshots bounds the memory: a device takes some 3 KB, its part of
	// the bodies included.
	mostInSnapshots = 20_000
)

// snapshots keeps what /devices/current answers, of the teams that ask. One
// read serves all requests of a team for a moment; while they go on, the next
// read begins before the last is too old, so that none of them waits for it.
type snapshots struct {
	devices Devices
	now     func() time.Time
	age     time.Duration // what an answer may lag behind the tables; 0 reads anew for every request
	flights singleflight.Group

	mu   sync.Mutex
	kept map[uuid.UUID]*snapshot
}

func newSnapshots(devices Devices, now func() time.Time, age time.Duration) *snapshots {
	switch {
	case age == 0:
		age = snapshotAge
	case age < 0:
		age = 0
	}
	return &snapshots{devices: devices, now: now, age: age, kept: map[uuid.UUID]*snapshot{}}
}

// of returns a team's snapshot that holds what was committed by s.age before
// the call.
func (s *snapshots) of(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	oldest := time.Now().Add(-s.age)
	if snap := s.keptOf(teamID); s.serves(snap, oldest) {
		if snap.readAt.Sub(oldest) < s.age/2 {
			s.refresh(ctx, teamID) // For the next request; its error is that one's.
		}
		return snap, nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case result := <-s.refresh(ctx, teamID):
			if result.Err != nil {
				return nil, result.Err
			}
			// A read that was under way already may have begun too early.
			if snap := result.Val.(*snapshot); s.serves(snap, oldest) { //nolint:forcetypeassert // refresh returns no other.
				return snap, nil
			}
		}
	}
}

// serves reports whether a snapshot is of the hours of now and not too old.
func (s *snapshots) serves(snap *snapshot, oldest time.Time) bool {
	return snap != nil && !snap.readAt.Before(oldest) && snap.hours == roomsensor.SummaryWindow(s.now())
}

func (s *snapshots) keptOf(teamID uuid.UUID) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[teamID]
}

// refresh reads a team's snapshot anew, once for all who ask at a time. It does
// not end with the request that happened to come first.
func (s *snapshots) refresh(ctx context.Context, teamID uuid.UUID) <-chan singleflight.Result {
	return s.flights.DoChan(teamID.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotRead)
		defer cancel()
		snap, err := s.read(ctx, teamID)
		if err == nil {
			s.keep(teamID, snap)
		}
		return snap, err
	})
}

// read reads the devices with their newest readings and the current hour, and
// the hours that are over only where what is kept of them is too old.
func (s *snapshots) read(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	snap := &snapshot{readAt: time.Now(), hours: roomsensor.SummaryWindow(s.now())}
	closed, current := snap.hours, snap.hours
	current.From = snap.hours.To.Add(-time.Hour)
	closed.To = current.From
	var err error
	snap.devices, err = s.devices.CurrentDevices(ctx, teamID, roomsensor.DeviceQuery{Limit: mostInSnapshot + 1}, current)
	if err != nil {
		return nil, err
	}
	if len(snap.devices) > mostInSnapshot {
		snap.devices, snap.partial = nil, true
		return snap, nil
	}
	if err := s.readClosed(ctx, teamID, snap, closed); err != nil {
		return nil, err
	}
	for i := range snap.devices {
		d := &snap.devices[i]
		d.Last24h = d.Last24h.Plus(snap.closed[d.ID])
	}
	return snap, nil
}

func (s *snapshots) readClosed(ctx context.Context, teamID uuid.UUID, snap *snapshot, hours roomsensor.Window) error {
	last := s.keptOf(teamID)
	if last != nil && last.hours == snap.hours && time.Since(last.closedAt) < closedAges*s.age {
		snap.closed, snap.closedAt = last.closed, last.closedAt
		return nil
	}
	ids := make([]uuid.UUID, len(snap.devices))
	for i := range snap.devices {
		ids[i] = snap.devices[i].ID
	}
	snap.closedAt = time.Now()
	var err error
	snap.closed, err = s.devices.HourStats(ctx, teamID, ids, hours)
	return err
}

// keep remembers a snapshot, and forgets those of teams that ceased to ask.
func (s *snapshots) keep(teamID uuid.UUID, snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	devices := 0
	for id, other := range s.kept {
		if time.Since(other.readAt) > closedAges*s.age {
			delete(s.kept, id)
		} else {
			devices += len(other.devices)
		}
	}
	if devices+len(snap.devices) > mostInSnapshots {
		clear(s.kept) // Each is read again when it is asked for.
	}
	s.kept[teamID] = snap
}
