package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

const (
	// maxSilentSearches is how many searches for silent devices of one team other teams may wait for.
	maxSilentSearches = 2
	// maxHistories is how many devices have their past hours read in one transaction: 40,000 readings. If workers stored
	// the readings of a large fleet in the order of arrival, each of them is on a page of its own, and a team of 100
	// devices takes 0.4 seconds when nothing else runs.
	maxHistories = 150
	// portionTimeout limits the read of a portion, whose statements each have a limit of their own.
	portionTimeout = 15 * time.Second
	// shortRead is how long the readings of a portion take at most for the next one to have twice as many devices. It may
	// be longer if the versions of the devices take longer, which each portion reads again.
	shortRead = 500 * time.Millisecond
	// maxAloneReads is the limit of reads of single teams. With those of several teams, they take less than half of the
	// connections.
	maxAloneReads = 3
	// togetherLockTimeout is how long other teams may wait for an old chunk that is being rewritten.
	togetherLockTimeout = "100ms"
)

// CurrentTeams is CurrentDevices for all devices of some distinct teams, which it reads together: most of the time of
// a statement for few devices is the time to plan it. It reads only what is not kept (see keptTeam). The result has
// the devices of each team in the order of teamIDs. It is nil for a team that must be read alone, because others
// would wait for it: a team with more than q.Limit devices or q.MaxTagBytes of tags, with silent devices that are
// hard to find, or of whose devices too many have no readings that are kept.
func (s *Store) CurrentTeams(
	ctx context.Context, teamIDs []uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([][]roomsensor.CurrentDevice, error) {
	r := s.newCurrentRead(teamIDs, q, hours, s.maxHistories)
	r.together = true
	err := s.ReadOnly(ctx, s.Pool, "reading snapshots", func(tx pgx.Tx) error { return r.readTeams(ctx, tx) })
	if err != nil {
		return nil, err
	}
	r.storeHours(ctx)
	return r.keep(), nil
}

// CurrentTeam is CurrentTeams for one team, with the time at which it began to read it. The devices are nil only for
// a team with more than q.Limit devices or q.MaxTagBytes of tags.
//
// It reads readings that are not kept in portions, and waits for its turn before each, while maxAloneReads others
// run. All readings of a large team can take longer than a request. Therefore each portion is kept, and one that has
// begun is read to its end although ctx ends, so that the next call continues: otherwise teams that had waited for
// long would never get further.
func (s *Store) CurrentTeam(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) (devices []roomsensor.CurrentDevice, readAt time.Time, err error) {
	var previous *keptTeam
	most := s.maxHistories
	for {
		r, err := s.readPortion(ctx, teamID, q, hours, previous, most)
		if err != nil {
			return nil, time.Time{}, err
		}
		t := &r.teams[0]
		if devices := r.keep()[0]; devices != nil || t.leftOut {
			return devices, r.readAt, nil
		}
		switch {
		case previous != nil && t.startedAgain: // Readings that others write must not prevent that it ends.
			most = math.MaxInt
		case r.reading < max(shortRead, r.listing):
			most *= 2
		}
		previous = t.next
	}
}

// readPortion reads a team with at most some past hours that are not kept.
func (s *Store) readPortion(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
	previous *keptTeam, most int,
) (*currentRead, error) {
	select {
	case s.aloneReads <- struct{}{}:
		defer func() { <-s.aloneReads }()
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil { // A portion that began would not end with it.
		return nil, fmt.Errorf("waiting to read the snapshot: %w", pg.Translate(err))
	}
	r := s.newCurrentRead([]uuid.UUID{teamID}, q, hours, most)
	r.teams[0].kept = previous
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), portionTimeout)
	defer cancel()
	err := s.ReadOnly(ctx, s.Pool, "reading the snapshot", func(tx pgx.Tx) error { return r.readTeams(ctx, tx) })
	if err == nil {
		r.storeHours(ctx)
	}
	return r, err
}

// currentRead is one read of the snapshots of some teams.
type currentRead struct {
	store       *Store
	readAt      time.Time
	hours       roomsensor.Window
	maxDevices  int  // a team with more is left out
	maxTagBytes int  // a team with more is left out
	most        int  // devices whose past hours are read
	together    bool // teams that others would wait for are left out
	source      readingsSource
	teams       []currentTeam

	parametersSet    bool                    // whether setParameters was called
	newHours         db.CurrentHourPutParams // queued for storeHours
	listing, reading time.Duration           // how long the versions and the readings took
}

// currentTeam is a team in a read. next has its devices in the same order.
type currentTeam struct {
	id           uuid.UUID
	devices      []roomsensor.CurrentDevice // by id
	kept         *keptTeam                  // what an earlier read or portion kept; nil if it cannot be used
	next         *keptTeam
	tagBytes     int
	leftOut      bool // the team must be read alone, or has too many devices or tags
	unread       bool // readings are missing in next
	startedAgain bool // the readings that were kept could not be used
}

func (s *Store) newCurrentRead(
	teamIDs []uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window, most int,
) *currentRead {
	r := &currentRead{
		store: s, readAt: time.Now(), hours: hours, maxDevices: q.Limit, maxTagBytes: cmp.Or(q.MaxTagBytes, math.MaxInt),
		most: most, teams: make([]currentTeam, len(teamIDs)),
	}
	for i, id := range teamIDs {
		sooner := rand.N(s.keepAll/2 + 1) //nolint:gosec // Not a secret.
		r.teams[i] = currentTeam{id: id, next: &keptTeam{
			until: r.readAt.Add(s.keepAll - sooner), pastAt: r.readAt, nextPastAt: r.randomNextPastAt(), hours: hours,
		}}
	}
	return r
}

// readTeams reads what is not kept of all teams.
func (r *currentRead) readTeams(ctx context.Context, tx pgx.Tx) error {
	if err := r.readTeamDevices(ctx, tx); err != nil {
		return err
	}
	return r.readTeamReadings(ctx, tx)
}

func (r *currentRead) teamIDs() []uuid.UUID {
	ids := make([]uuid.UUID, len(r.teams))
	for i := range r.teams {
		ids[i] = r.teams[i].id
	}
	return ids
}

// randomNextPastAt returns a random time before the end of the current hour.
func (r *currentRead) randomNextPastAt() time.Time {
	left := max(0, r.hours.To.Sub(r.readAt)-nextPastMargin)
	return r.readAt.Add(rand.N(left + 1)) //nolint:gosec // Not a secret.
}

// setParameters sets the parameters of statements that read devices by their ids, once. PostgreSQL may expect a few
// hundred of them to be worth parallel workers, each of which compiles the statement.
func (r *currentRead) setParameters(ctx context.Context, tx pgx.Tx) error {
	if r.parametersSet {
		return nil
	}
	r.parametersSet = true
	parameters := []string{
		"plan_cache_mode", "force_custom_plan", "jit", "off", "max_parallel_workers_per_gather", "0",
	}
	if r.together {
		parameters = append(parameters, "lock_timeout", togetherLockTimeout)
	}
	return r.store.Set(ctx, tx, parameters...)
}

// currentHour returns the last of the hours, and pastHours the others.
func currentHour(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.To.Add(-time.Hour), To: hours.To}
}

func pastHours(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.From, To: hours.To.Add(-time.Hour)}
}

// nextPastHours returns the past hours that are still past hours of the snapshot in the next hour.
func nextPastHours(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.From.Add(time.Hour), To: hours.To.Add(-time.Hour)}
}

// missingReadings are the devices of which readings must be read, by what must be read. A device can be in several.
type missingReadings struct {
	latest   []*keptDevice // the newest reading and the current hour
	added    []*keptDevice // the readings after the newest one
	past     []*keptDevice // the past hours, with and without the first one
	nextPast []*keptDevice // the past hours but the first one
}

func (m *missingReadings) count() int { return len(m.latest) + len(m.added) + m.histories() }

// histories returns the number of devices whose past hours are read.
func (m *missingReadings) histories() int { return len(m.past) + len(m.nextPast) }

// takeReadings copies what is known from the readings that were kept, and adds the rest to missing, but not those of
// devices whose past hours are unknown once most of them are read.
func (t *currentTeam) takeReadings(keepPast time.Duration, most int, missing *missingReadings) {
	kept, readsPast := t.kept, true
	if kept.hasReadingsOf(&t.next.source) {
		if readsPast = time.Since(kept.pastAt) >= keepPast; !readsPast {
			t.next.pastAt = kept.pastAt
		}
		if kept.hours == t.next.hours {
			t.next.nextPastAt = kept.nextPastAt
		}
	} else {
		kept, t.startedAgain = &keptTeam{}, true
	}
	readsNextPast := !time.Now().Before(t.next.nextPastAt)
	for i := range t.next.devices {
		d := &t.next.devices[i]
		before, full := kept.findReadings(d.id, t.next.hours), missing.histories() >= most
		if d.hasReadings = before != nil || !full; !d.hasReadings {
			t.unread = true
			continue
		}
		d.take(before, t.next.hours, missing)
		readsAll := before == nil || !d.pastIsExact && readsPast
		switch {
		case readsAll && full:
			t.unread = true
		case readsAll:
			missing.past = append(missing.past, d)
		case d.pastIsExact && !d.hasNextPast && readsNextPast && !full:
			missing.nextPast = append(missing.nextPast, d)
		}
	}
	if t.unread {
		t.next.pastAt = kept.pastAt // For the next portion, which reads the rest.
	}
}

// take copies what is known of the readings, but for past hours that are unknown.
func (d *keptDevice) take(before *keptDevice, hours roomsensor.Window, missing *missingReadings) {
	switch {
	case before == nil:
		missing.latest = append(missing.latest, d)
	case before.versions.device == d.versions.device:
		d.deviceReadings = before.deviceReadings
	case before.onlyAdded(d, hours):
		d.deviceReadings = before.deviceReadings
		missing.added = append(missing.added, d)
	default:
		d.past = before.past
		missing.latest = append(missing.latest, d)
	}
}

// readTeamReadings reads the readings that were not kept. If several teams are read together, it leaves out those
// with silent devices that are hard to find.
func (r *currentRead) readTeamReadings(ctx context.Context, tx pgx.Tx) error {
	began := time.Now()
	defer func() { r.reading = time.Since(began) }()
	var missing missingReadings
	var teamIDs []uuid.UUID
	for i := range r.teams {
		t, before := &r.teams[i], missing.count()
		if t.leftOut {
			continue
		}
		if t.takeReadings(r.store.keepPast, r.most, &missing); missing.count() > before {
			teamIDs = append(teamIDs, t.id)
		}
	}
	if len(teamIDs) == 0 {
		return nil
	}
	if err := r.setParameters(ctx, tx); err != nil {
		return err
	}
	if err := r.readLatest(ctx, tx, teamIDs, missing.latest); err != nil {
		return err
	}
	if err := r.readAdded(ctx, tx, teamIDs, missing.added); err != nil {
		return err
	}
	return r.readPast(ctx, tx, teamIDs, &missing)
}

// readLatest reads the newest reading and the current hour of devices.
func (r *currentRead) readLatest(
	ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, devices []*keptDevice,
) error {
	if len(devices) == 0 {
		return nil
	}
	l := r.store.newLatestSearch(tx, teamIDs, r.hours.To)
	silent, err := l.searchRecent(ctx, keptIDs(devices))
	if err != nil {
		return err
	}
	if r.together {
		silent = r.leaveOut(silent)
	}
	if err := l.searchSilent(ctx, silent); err != nil {
		return err
	}
	sums, err := r.store.ReadingStats(ctx, tx, teamIDs, keptIDs(devices), currentHour(r.hours))
	if err != nil {
		return err
	}
	for _, d := range devices {
		d.latest, d.current = packReading(l.found[d.id]), packStats(sums[d.id])
	}
	return nil
}

// readAdded reads the readings after the newest one of devices.
func (r *currentRead) readAdded(ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, devices []*keptDevice) error {
	if len(devices) == 0 {
		return nil
	}
	p := db.ReadingListAfterParams{TeamIds: teamIDs, WindowFrom: r.hours.To}
	byID := make(map[uuid.UUID]*keptDevice, len(devices))
	for _, d := range devices {
		after := time.UnixMicro(d.latest.bucketAt).UTC()
		p.DeviceIds, p.After = append(p.DeviceIds, d.id), append(p.After, after)
		if after.Before(p.WindowFrom) {
			p.WindowFrom = after
		}
		byID[d.id] = d
	}
	rows, err := r.store.Queries.ReadingListAfter(ctx, tx, p)
	for i := range rows {
		row := db.ReadingLatestListRow(rows[i])
		byID[row.DeviceID].add(latestReading(&row), r.hours)
	}
	return err
}

// readPast reads past hours, and those of the next hour, which are the same but the first one.
func (r *currentRead) readPast(ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, missing *missingReadings) error {
	devices := slices.Concat(missing.past, missing.nextPast)
	if len(devices) == 0 {
		return nil
	}
	hours, err := r.readPastHours(ctx, tx, teamIDs, devices)
	if err != nil {
		return err
	}
	for i, d := range devices {
		if i < len(missing.past) {
			d.past, d.pastIsExact = packStats(hours[i].past(0)), true
		}
		d.nextPast, d.hasNextPast = packStats(hours[i].past(1)), true
		r.queueHours(&hours[i])
	}
	return nil
}

func keptIDs(devices []*keptDevice) []uuid.UUID {
	ids := make([]uuid.UUID, len(devices))
	for i, d := range devices {
		ids[i] = d.id
	}
	return ids
}

// leaveOut leaves out the teams whose silent devices are hard to find, and returns the silent devices of the others.
func (r *currentRead) leaveOut(silent silentDevices) silentDevices {
	if len(silent.bounds)+len(silent.unknown) == 0 {
		return silent
	}
	for i := range r.teams {
		t := &r.teams[i]
		ofTeam := func(id uuid.UUID) bool { return t.next.find(id) != nil }
		of := silent.filter(ofTeam)
		if len(of.unknown) > 0 || len(groupBounds(of.bounds)) > maxSilentSearches {
			silent = silent.filter(func(id uuid.UUID) bool { return !ofTeam(id) })
			t.leftOut = true
		}
	}
	return silent
}

// keep keeps what was read for the next read, and returns the devices of each team, or nil if it was left out or
// readings are missing.
func (r *currentRead) keep() [][]roomsensor.CurrentDevice {
	teams := make([][]roomsensor.CurrentDevice, len(r.teams))
	for i := range r.teams {
		t := &r.teams[i]
		if t.leftOut {
			continue
		}
		r.store.keepTeam(t.id, t.next)
		if t.unread {
			continue
		}
		for j := range t.next.devices {
			d := &t.next.devices[j]
			t.devices[j].Latest, t.devices[j].Last24h = d.latest.reading(), d.current.stats().Plus(d.past.stats())
		}
		teams[i] = t.devices
	}
	return teams
}
