package api

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/teamcache"
)

const (
	// snapshotAge is the default maximum lag of /devices/current (decision 43).
	snapshotAge = time.Second
	// snapshotAges is the factor by which a snapshot stays longer in memory, to be compared with the next one.
	snapshotAges = 2
	// aloneAges is the factor by which it is remembered longer that a team must be read alone: for 50 seconds.
	aloneAges = 50
	// largeTeamAges is the factor by which it is remembered longer that a team is too large for a snapshot: for 5 minutes.
	largeTeamAges = 300

	// maxTogether is the limit of reads of several small teams at the same time.
	maxTogether = 3
	// maxTeamsTogether is how many teams one of these reads has at most. More teams would save little time and wait
	// longer.
	maxTeamsTogether = 16
	// maxSmallTeam is the number of devices of a team that is read together with others. The plan of a statement takes as
	// long as it takes to read some hundred devices, so that larger teams gain little.
	maxSmallTeam         = 150
	maxSmallTeamTagBytes = maxSmallTeam * snapshotDeviceBytes
	// aloneTimeout is for how long the read of a single team waits for its turns. It goes on when those who asked have
	// left, because a team of which nothing was read before takes long.
	aloneTimeout = 30 * time.Second
	// maxRefreshes is the limit of teams of which a read waits or runs.
	maxRefreshes = 1000

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
	// maxAloneBytes is the limit of the memory in which it is remembered that teams must be read alone, each of which
	// takes aloneBytes.
	maxAloneBytes = 1 << 20
	aloneBytes    = 200
)

// snapshots caches the data of /devices/current per team. While requests keep coming, the next read begins before the
// snapshot is too old, so that no request waits for it. Small teams that are read at the same time share statements.
type snapshots struct {
	devices Devices
	now     func() time.Time
	age     time.Duration // maximum lag behind the tables; 0 means a read per request
	cache   *teamcache.Cache[snapshot]
	metrics *metrics

	smallTeams *teamcache.Together[uuid.UUID, *snapshot]
	aloneUntil *teamcache.Values[time.Time] // until when a team is read alone
	alone      *teamcache.Cache[snapshot]   // reads single teams, and keeps nothing
	// readingAlone has the ids of the teams in alone. Another read of such a team would read the same again.
	readingAlone sync.Map
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
		Read: s.read, Timeout: timeout, MaxReads: maxRefreshes, MaxBytes: maxSnapshotsBytes,
	})
	s.alone = teamcache.New(teamcache.Config[snapshot]{
		Read: s.readTeam, Timeout: aloneTimeout, MaxReads: maxRefreshes,
	})
	s.aloneUntil = teamcache.NewValues[time.Time](maxAloneBytes)
	s.smallTeams = teamcache.NewTogether(teamcache.TogetherConfig[uuid.UUID, *snapshot]{
		Read: s.readSmallTeams, Timeout: timeout, MaxReads: maxTogether, MaxQueries: maxTeamsTogether,
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

// read reads a snapshot for the cache.
func (s *snapshots) read(
	ctx context.Context, teamID uuid.UUID, last *snapshot,
) (entry teamcache.Entry[snapshot], err error) {
	snap, err := s.readSnapshot(ctx, teamID)
	if err != nil {
		return entry, err
	}
	s.observe(last, snap)
	lifetime := snapshotAges * s.age
	if snap.partial {
		lifetime = largeTeamAges * s.age
	}
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

// readSnapshot reads the devices with their newest readings and the sums of the hours, with other teams if it can.
func (s *snapshots) readSnapshot(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	if until := s.aloneUntil.Kept(teamID); until != nil && time.Now().Before(*until) {
		return s.readAlone(ctx, teamID)
	}
	if _, running := s.readingAlone.Load(teamID); running {
		return s.readAlone(ctx, teamID)
	}
	snap, err := s.smallTeams.Ask(ctx, teamID)
	if err != nil || snap != nil {
		return snap, err
	}
	if snap, err = s.readAlone(ctx, teamID); err == nil && !snap.isSmall() {
		s.rememberAlone(teamID)
	}
	return snap, err
}

// rememberAlone makes a team be read alone for some time.
func (s *snapshots) rememberAlone(teamID uuid.UUID) {
	until := time.Now().Add(aloneAges * s.age)
	s.aloneUntil.Keep(teamID, teamcache.Entry[time.Time]{Value: &until, Bytes: aloneBytes, Until: until})
}

// readAlone reads a snapshot of one team, or waits for the read that runs.
func (s *snapshots) readAlone(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-s.alone.Refresh(ctx, teamID):
		snap, _ := result.Val.(*snapshot)
		return snap, result.Err
	}
}

// readTeam reads a snapshot for alone, which does not keep it because it is larger than MaxBytes, 0.
func (s *snapshots) readTeam(
	ctx context.Context, teamID uuid.UUID, _ *snapshot,
) (entry teamcache.Entry[snapshot], err error) {
	s.readingAlone.Store(teamID, struct{}{})
	defer s.readingAlone.Delete(teamID)
	snap := &snapshot{hours: roomsensor.SummaryWindow(s.now())}
	snap.devices, snap.readAt, err = s.devices.CurrentTeam(ctx, teamID, roomsensor.DeviceQuery{
		Limit: maxSnapshotBytes / snapshotDeviceBytes, MaxTagBytes: maxSnapshotBytes / snapshotTagFactor,
	}, snap.hours)
	if err != nil {
		return entry, err
	}
	if snap.countBytes(); snap.devices == nil || snap.bytes > maxSnapshotBytes {
		snap.devices, snap.bytes, snap.partial = nil, 0, true
	}
	return teamcache.Entry[snapshot]{Value: snap, Bytes: max(1, snap.bytes)}, nil
}

// readSmallTeams reads snapshots of some teams. It returns nil for a team that must be read alone. If the read fails,
// one of them may be the reason, and all of them are read alone for some time.
func (s *snapshots) readSmallTeams(ctx context.Context, teamIDs []uuid.UUID) ([]*snapshot, error) {
	list := make([]*snapshot, len(teamIDs))
	readAt, hours := time.Now(), roomsensor.SummaryWindow(s.now())
	teams, err := s.devices.CurrentTeams(ctx, teamIDs, roomsensor.DeviceQuery{
		Limit: maxSmallTeam, MaxTagBytes: maxSmallTeamTagBytes,
	}, hours)
	if err != nil {
		if len(teamIDs) == 1 {
			return nil, err
		}
		for _, id := range teamIDs {
			s.rememberAlone(id)
		}
		return list, nil
	}
	for i, devices := range teams {
		if devices != nil {
			list[i] = &snapshot{readAt: readAt, hours: hours, devices: devices}
			list[i].countBytes()
		}
	}
	return list, nil
}
