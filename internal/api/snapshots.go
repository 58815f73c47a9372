package api

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/teamcache"
)

const (
	// snapshotAge is how far a snapshot may lag behind the tables (decision 43).
	snapshotAge = time.Second
	// snapshotAges is after how many ages an unused snapshot is dropped. Until then it is compared with the next one.
	snapshotAges = 2
	// largeTeamAges is for how many ages it is remembered that a team is too large for a snapshot: for 5 minutes.
	largeTeamAges = 300

	// maxSnapshotReads is how many teams are read at the same time: half of the connections to the database, because a
	// team whose statistics were not read before takes long.
	maxSnapshotReads = 8
	// maxSnapshotsBytes is the limit of the memory of all snapshots.
	maxSnapshotsBytes = 64 << 20
	// maxSnapshotBytes is the limit of the memory of one snapshot: 10,000 devices with a few tags each. Larger teams are
	// read page by page.
	maxSnapshotBytes = maxSnapshotsBytes / 3
	// snapshotDeviceBytes is what a device takes in a snapshot without its tags: 1.3 KB and, in a team whose devices fit
	// on one page, another 1.2 KB in the bodies.
	snapshotDeviceBytes = 2 << 10
	// snapshotTagFactor is how often a snapshot has the tags: in the devices, in the body and in the compressed bodies.
	snapshotTagFactor = 3
)

// snapshots caches the data of /devices/current per team. While requests keep coming, the next read begins before the
// snapshot is too old, so that no request waits for it.
type snapshots struct {
	devices Devices
	now     func() time.Time
	age     time.Duration // maximum lag behind the tables; 0 means a read per request
	cache   *teamcache.Cache[snapshot]
	metrics *metrics
}

// newSnapshots returns an empty cache. timeout limits one read, which many requests may wait for.
func newSnapshots(devices Devices, now func() time.Time, age, timeout time.Duration, metrics *metrics) *snapshots {
	switch {
	case age == 0:
		age = snapshotAge
	case age < 0:
		age = 0
	}
	s := &snapshots{devices: devices, now: now, age: age, metrics: metrics}
	s.cache = teamcache.New(teamcache.Config[snapshot]{
		Read: s.read, Timeout: timeout, MaxReads: maxSnapshotReads, MaxBytes: maxSnapshotsBytes,
	})
	return s
}

// of returns a snapshot of a team that contains everything that was committed s.age before the call.
func (s *snapshots) of(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	oldest := time.Now().Add(-s.age)
	snap, err := s.cache.Get(ctx, teamID, func(snap *snapshot) bool { return s.serves(snap, oldest) })
	if err != nil {
		return nil, err
	}
	if !snap.partial && snap.readAt.Sub(oldest) < s.age/2 {
		s.cache.Refresh(ctx, teamID) // For the next request, which also gets its error.
	}
	return snap, nil
}

// serves reports whether a snapshot covers the current hours and was not read before oldest. A partial one has no data
// that could be too old.
func (s *snapshots) serves(snap *snapshot, oldest time.Time) bool {
	if snap.partial && time.Since(snap.readAt) < largeTeamAges*s.age {
		return true
	}
	return !snap.readAt.Before(oldest) && snap.hours == roomsensor.SummaryWindow(s.now())
}

// read reads the devices of a team with their newest readings and the sums of the hours.
func (s *snapshots) read(
	ctx context.Context, teamID uuid.UUID, last *snapshot,
) (entry teamcache.Entry[snapshot], err error) {
	now, lifetime := s.now(), snapshotAges*s.age
	snap := &snapshot{readAt: time.Now(), hours: roomsensor.SummaryWindow(now)}
	snap.devices, err = s.devices.CurrentTeam(ctx, teamID, roomsensor.DeviceQuery{
		Limit: maxSnapshotBytes / snapshotDeviceBytes, MaxTagBytes: maxSnapshotBytes / snapshotTagFactor,
	}, now)
	if err != nil {
		return entry, err
	}
	if snap.countBytes(); snap.devices == nil || snap.bytes > maxSnapshotBytes {
		snap.devices, snap.bytes, snap.partial, lifetime = nil, 0, true, largeTeamAges*s.age
	}
	s.observe(last, snap)
	return teamcache.Entry[snapshot]{Value: snap, Bytes: snap.bytes, Until: snap.readAt.Add(lifetime)}, nil
}

// maxObservedAge is the age of a snapshot after which the next one does not show when its data became visible: nobody
// asked meanwhile.
const maxObservedAge = 2 * time.Second

// observe measures how long after their arrival the last uploads of devices became visible: those that the previous
// snapshot of the team does not show. Both are sorted by id.
func (s *snapshots) observe(previous, next *snapshot) {
	if previous == nil || previous.partial || next.partial || next.readAt.Sub(previous.readAt) > maxObservedAge {
		return
	}
	now, before := s.now(), previous.devices
	for i := range next.devices {
		d := &next.devices[i]
		for len(before) > 0 && bytes.Compare(before[0].ID[:], d.ID[:]) < 0 {
			before = before[1:]
		}
		if len(before) == 0 || before[0].ID != d.ID || d.LastSeenAt == nil {
			continue
		}
		if last := before[0].LastSeenAt; last == nil || last.Before(*d.LastSeenAt) {
			s.metrics.visibleLag.Observe(max(0, now.Sub(*d.LastSeenAt).Seconds()))
		}
	}
}
