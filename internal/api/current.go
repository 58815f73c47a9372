package api

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
)

// listCurrentDevices handles GET /devices/current.
func (s *server) listCurrentDevices(ctx context.Context, c *call) error {
	state, err := s.readDeviceParameters(c, cursor.CurrentDevices)
	if err != nil {
		return err
	}
	snap, err := s.current.of(ctx, c.key.TeamID)
	if err != nil {
		return err
	}
	now := s.now()
	if !snap.partial && !state.Continued() && len(state.Filters) == 0 && len(snap.devices) <= state.Limit {
		if whole := snap.document(now); whole != nil {
			c.rows = len(snap.devices)
			return s.writeDocument(ctx, c, whole)
		}
	}
	return s.sendPage(ctx, c, state, maxDeviceBytes, func(p *page) error {
		devices, hours := snap.page(deviceQuery(p)), snap.hours
		if snap.partial {
			hours = roomsensor.SummaryWindow(now)
			devices, err = s.backend.CurrentDevices(ctx, c.key.TeamID, deviceQuery(p), hours)
			if err != nil {
				return err
			}
		}
		item := func(dst []byte, d *roomsensor.CurrentDevice) []byte { return appendCurrent(dst, d, now, hours.From) }
		for i := range devices {
			if add(p, &devices[i], item) {
				p.State.ID = devices[i].ID
			}
		}
		return nil
	})
}

const (
	// snapshotAge is the default maximum lag of /devices/current (decision 43).
	snapshotAge = time.Second
	// closedHoursAges is the factor by which the sums of past hours are kept longer: for 30 seconds, half of the time that
	// a late reading may take to show in them (decision 17).
	closedHoursAges = 30
	// snapshotTimeout limits one read, which many requests may wait for.
	snapshotTimeout = 5 * time.Second
	// largeTeamAges is the factor by which it is remembered longer that a team is too large for a snapshot: for 5 minutes.
	largeTeamAges = 300
	// maxRefreshes is the limit of snapshots that are read at the same time: half of the connections to the database.
	maxRefreshes = 8

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

// snapshots caches the data of /devices/current per team. One read serves all requests of a team for a moment. While
// requests keep coming, the next read begins before the snapshot is too old, so that no request waits for it.
type snapshots struct {
	devices Devices
	now     func() time.Time
	age     time.Duration // maximum lag behind the tables; 0 means a read per request
	flights singleflight.Group
	reading chan struct{} // full while maxRefreshes snapshots are read

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
	return &snapshots{
		devices: devices, now: now, age: age,
		reading: make(chan struct{}, maxRefreshes), kept: map[uuid.UUID]*snapshot{},
	}
}

// of returns a snapshot of a team that contains everything that was committed s.age before the call.
func (s *snapshots) of(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	oldest := time.Now().Add(-s.age)
	if snap := s.keptOf(teamID); s.serves(snap, oldest) {
		if !snap.partial && snap.readAt.Sub(oldest) < s.age/2 {
			s.refresh(ctx, teamID) // For the next request, which also gets its error.
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
			// A read that was already running may have begun too early.
			if snap := result.Val.(*snapshot); s.serves(snap, oldest) { //nolint:forcetypeassert // As refresh returns it.
				return snap, nil
			}
		}
	}
}

// serves reports whether a snapshot covers the current hours and was not read before oldest. A partial one has no data
// that could be too old.
func (s *snapshots) serves(snap *snapshot, oldest time.Time) bool {
	switch {
	case snap == nil:
		return false
	case snap.partial && time.Since(snap.readAt) < s.lifetime(snap):
		return true
	}
	return !snap.readAt.Before(oldest) && snap.hours == roomsensor.SummaryWindow(s.now())
}

// lifetime is how long a snapshot stays in memory. The sums of past hours in it are used for longer than the rest.
func (s *snapshots) lifetime(snap *snapshot) time.Duration {
	if snap.partial {
		return largeTeamAges * s.age
	}
	return closedHoursAges * s.age
}

func (s *snapshots) keptOf(teamID uuid.UUID) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.kept[teamID]
	if snap != nil {
		snap.usedAt = time.Now()
	}
	return snap
}

// refresh reads the snapshot of a team, once for all requests that wait for it. It does not end with the request that
// started it.
func (s *snapshots) refresh(ctx context.Context, teamID uuid.UUID) <-chan singleflight.Result {
	return s.flights.DoChan(teamID.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
		defer cancel()
		select {
		case s.reading <- struct{}{}:
			defer func() { <-s.reading }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var snap *snapshot
		err := panics.Recover(func() (err error) { // singleflight would end the process on a panic.
			snap, err = s.read(ctx, teamID)
			return err
		})
		if err == nil {
			s.keep(teamID, snap)
		}
		return snap, err
	})
}

// read reads the devices with their newest readings and the sums of the current hour. It reads the sums of past hours
// only if those in memory are too old.
func (s *snapshots) read(ctx context.Context, teamID uuid.UUID) (*snapshot, error) {
	snap := &snapshot{readAt: time.Now(), hours: roomsensor.SummaryWindow(s.now())}
	closed, current := snap.hours, snap.hours
	current.From = snap.hours.To.Add(-time.Hour)
	closed.To = current.From
	var err error
	snap.devices, err = s.devices.CurrentDevices(ctx, teamID, roomsensor.DeviceQuery{
		Limit: maxSnapshotBytes/snapshotDeviceBytes + 1, MaxTagBytes: maxSnapshotBytes / snapshotTagFactor,
	}, current)
	if err != nil {
		return nil, err
	}
	for i := range snap.devices {
		snap.bytes += snapshotDeviceBytes + snapshotTagFactor*snap.devices[i].TagBytes()
	}
	if snap.bytes > maxSnapshotBytes { // Not all devices may have been read.
		snap.devices, snap.bytes, snap.partial = nil, 0, true
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
	if last != nil && last.hours == snap.hours && time.Since(last.closedAt) < closedHoursAges*s.age {
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

// keep stores a snapshot. It drops those of teams that no longer ask and, if there are too many bytes, those that were
// not used for longest.
func (s *snapshots) keep(teamID uuid.UUID, snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.usedAt = time.Now()
	s.kept[teamID] = snap
	bytes := 0
	for id, other := range s.kept {
		if time.Since(other.readAt) > s.lifetime(other) {
			delete(s.kept, id)
		} else {
			bytes += other.bytes
		}
	}
	for bytes > maxSnapshotsBytes {
		oldest := teamID
		for id, other := range s.kept {
			if other.bytes > 0 && other.usedAt.Before(s.kept[oldest].usedAt) {
				oldest = id
			}
		}
		bytes -= s.kept[oldest].bytes
		delete(s.kept, oldest)
	}
}

// snapshot has the data of /devices/current for one team at one time. The fields above usedAt never change, so that
// any number of requests may read them.
type snapshot struct {
	readAt   time.Time // when the read began: the snapshot contains everything committed before
	hours    roomsensor.Window
	devices  []roomsensor.CurrentDevice     // all devices of the team, by id
	bytes    int                            // the memory that it takes, about
	partial  bool                           // the team is too large for a snapshot; devices is empty
	closed   map[uuid.UUID]roomsensor.Stats // of the past hours
	closedAt time.Time                      // when the read of closed began

	usedAt time.Time // guarded by the lock of snapshots

	mu       sync.Mutex
	whole    *document // the page of all devices
	tooLarge bool      // the devices need several pages
	until    time.Time // when the first status in whole changes
}

// document returns the page of all devices at now, or nil if it has too many bytes for one page. It renders the page
// again only after a status changed.
func (s *snapshot) document(now time.Time) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tooLarge || s.whole != nil && now.Before(s.until) {
		return s.whole
	}
	s.until = roomsensor.Forever
	for i := range s.devices {
		if change := roomsensor.StatusUntil(now, s.devices[i].LastSeenAt); change.Before(s.until) {
			s.until = change
		}
	}
	body := httpedge.BeginList(nil)
	for i := range s.devices {
		body = appendCurrent(element(body), &s.devices[i], now, s.hours.From)
		if len(body) > roomsensor.MaxPageBytes-len(`],"next_cursor":null}`) {
			s.whole, s.tooLarge = nil, true
			return nil
		}
	}
	s.whole = newDocument(httpedge.EndList(body, nil))
	return s.whole
}

// page selects devices like the store.
func (s *snapshot) page(q roomsensor.DeviceQuery) []roomsensor.CurrentDevice {
	rest := s.devices
	if q.After != nil {
		at, found := slices.BinarySearchFunc(rest, *q.After, func(d roomsensor.CurrentDevice, id uuid.UUID) int {
			return bytes.Compare(d.ID[:], id[:])
		})
		if found {
			at++
		}
		rest = rest[at:]
	}
	page := []roomsensor.CurrentDevice{}
	for i := range rest {
		if len(page) == q.Limit {
			break
		}
		if hasTags(rest[i].Metadata, q.Metadata) {
			page = append(page, rest[i])
		}
	}
	return page
}

// hasTags reports whether the tags include the wanted ones; it compares exactly (decision 18).
func hasTags(tags, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}
