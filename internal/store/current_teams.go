package store

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

const (
	// maxSilentSearches is how many searches for silent devices of one team other teams may wait for.
	maxSilentSearches = 2
	// togetherLockTimeout is how long other teams may wait for an old chunk that is being rewritten.
	togetherLockTimeout = "100ms"
)

// CurrentTeams is CurrentDevices for all devices of some distinct teams, which it reads together: most of the time of
// a statement for few devices is the time to plan it. It reads the readings of those devices only that changed (see
// teamReadings). The result has the devices of each team in the order of teamIDs. It is nil for a team that must be
// read alone, because others would wait for it: a team with more than q.Limit devices or q.MaxTagBytes of tags, or
// with silent devices that are hard to find.
func (s *Store) CurrentTeams(
	ctx context.Context, teamIDs []uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([][]roomsensor.CurrentDevice, error) {
	r := s.newCurrentRead(teamIDs, hours)
	err := s.readOnly(ctx, s.pool, "reading snapshots", func(tx pgx.Tx) error {
		if err := r.listTogether(ctx, tx, q); err != nil {
			return err
		}
		return r.readChanged(ctx, tx, true)
	})
	if err != nil {
		return nil, err
	}
	return r.keep(), nil
}

// CurrentTeam is CurrentTeams for one team, which it always returns. If the team has more tags than q.MaxTagBytes, it
// returns the first devices up to the one with which they exceed that.
func (s *Store) CurrentTeam(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	r := s.newCurrentRead([]uuid.UUID{teamID}, hours)
	err := s.readOnly(ctx, s.pool, "reading the snapshot", func(tx pgx.Tx) error {
		if err := r.listAlone(ctx, tx, q); err != nil {
			return err
		}
		return r.readChanged(ctx, tx, false)
	})
	if err != nil {
		return nil, err
	}
	return r.keep()[0], nil
}

// currentRead is one read of the snapshots of some teams.
type currentRead struct {
	store  *Store
	readAt time.Time
	hours  roomsensor.Window
	teams  []currentTeam
}

// currentTeam is a team in a read. next has the readings of its devices, in the same order.
type currentTeam struct {
	id       uuid.UUID
	devices  []roomsensor.CurrentDevice // by id
	next     *teamReadings
	tagBytes int
	leftOut  bool // the team must be read alone
}

func (s *Store) newCurrentRead(teamIDs []uuid.UUID, hours roomsensor.Window) *currentRead {
	r := &currentRead{store: s, readAt: time.Now(), hours: hours, teams: make([]currentTeam, len(teamIDs))}
	for i, id := range teamIDs {
		sooner := rand.N(s.keepReadings/2 + 1) //nolint:gosec // Not a secret.
		r.teams[i] = currentTeam{id: id, devices: []roomsensor.CurrentDevice{}, next: &teamReadings{
			until: r.readAt.Add(s.keepReadings - sooner), pastAt: r.readAt, hours: hours,
		}}
	}
	return r
}

// currentHour returns the last of the hours, and pastHours the others.
func currentHour(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.To.Add(-time.Hour), To: hours.To}
}

func pastHours(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.From, To: hours.To.Add(-time.Hour)}
}

// listTogether reads the devices of all teams, and leaves out teams with too many devices or tags.
func (r *currentRead) listTogether(ctx context.Context, tx pgx.Tx, q roomsensor.DeviceQuery) error {
	maxTagBytes := cmp.Or(q.MaxTagBytes, math.MaxInt)
	byID, ids := make(map[uuid.UUID]*currentTeam, len(r.teams)), make([]uuid.UUID, len(r.teams))
	for i := range r.teams {
		ids[i] = r.teams[i].id
		byID[ids[i]] = &r.teams[i]
	}
	rows, err := tx.Query(ctx, db.DeviceListOfTeams, positional(db.DeviceListOfTeamsParams{
		TeamIds: ids, Most: int64(q.Limit) + 1,
	})...)
	if err != nil {
		return err //nolint:wrapcheck // CurrentTeams wraps it.
	}
	_, err = eachRow(rows, func(row *db.DeviceListOfTeamsRow) (more bool, err error) {
		t := byID[row.TeamID]
		if t.leftOut {
			return true, nil
		}
		d, err := device(deviceDetail(row))
		t.add(row, &d)
		t.leftOut = len(t.devices) > q.Limit || t.tagBytes > maxTagBytes
		return true, err
	})
	return err
}

// listAlone reads the devices of the only team.
func (r *currentRead) listAlone(ctx context.Context, tx pgx.Tx, q roomsensor.DeviceQuery) error {
	t := &r.teams[0]
	return eachOfPage(ctx, tx, q, func(after *uuid.UUID, most int64) (sql string, args []any) {
		return db.DeviceListOfTeams, positional(db.DeviceListOfTeamsParams{
			TeamIds: []uuid.UUID{t.id}, After: after, Most: most,
		})
	}, deviceDetail, t.add)
}

// deviceDetail returns the columns of device_details.
func deviceDetail(row *db.DeviceListOfTeamsRow) *db.DeviceDetail {
	return &db.DeviceDetail{
		ID: row.ID, TeamID: row.TeamID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, Metadata: row.Metadata,
		LastSeenAt: row.LastSeenAt, RssiDbm: row.RssiDbm, SignalBars: row.SignalBars,
		AssignmentID: row.AssignmentID, Label: row.Label, StartedAt: row.StartedAt, ExternalRef: row.ExternalRef,
	}
}

// add adds a device that was read.
func (t *currentTeam) add(row *db.DeviceListOfTeamsRow, d *roomsensor.Device) {
	t.devices = append(t.devices, roomsensor.CurrentDevice{Device: *d})
	t.tagBytes += d.TagBytes()
	t.next.writers = row.Writers
	mark := row.PastVersion
	if row.LatestBucketAt == nil || row.LatestBucketAt.Before(currentHour(t.next.hours).From) {
		mark = notSettled
	}
	t.next.devices = append(t.next.devices, deviceReadings{id: row.ID, version: row.Version.Uint32, pastMark: mark})
}

// changedDevices are the devices of which readings must be read.
type changedDevices struct {
	all  []*deviceReadings
	past []*deviceReadings // those of them of which past hours must be read too
}

// take copies what is exact from the readings that were kept, and adds the other devices to changed.
func (t *currentTeam) take(kept *teamReadings, keepPast time.Duration, changed *changedDevices) {
	slices.SortFunc(t.devices, func(a, b roomsensor.CurrentDevice) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	slices.SortFunc(t.next.devices, func(a, b deviceReadings) int { return bytes.Compare(a.id[:], b.id[:]) })
	keepsPast := false
	if kept.serves(t.next.hours, t.next.writers) {
		t.next.until = kept.until
		if keepsPast = time.Since(kept.pastAt) < keepPast; keepsPast {
			t.next.pastAt = kept.pastAt
		}
	} else {
		kept = &teamReadings{}
	}
	for i := range t.next.devices {
		d := &t.next.devices[i]
		before := kept.find(d.id)
		switch {
		case before == nil || !keepsPast && !before.pastIsExact(d):
			changed.all, changed.past = append(changed.all, d), append(changed.past, d)
		case before.version != d.version:
			changed.all = append(changed.all, d)
			d.past, d.pastVersion, d.pastMark = before.past, before.pastVersion, before.pastMark
		default:
			*d = *before
		}
	}
}

// readChanged reads the readings of the devices that changed. If several teams are read together, it leaves out those
// with silent devices that are hard to find.
func (r *currentRead) readChanged(ctx context.Context, tx pgx.Tx, together bool) error {
	var changed changedDevices
	var teamIDs []uuid.UUID
	for i := range r.teams {
		t, before := &r.teams[i], len(changed.all)
		if t.leftOut {
			continue
		}
		if t.take(r.store.readings.Kept(t.id), r.store.keepPast, &changed); len(changed.all) > before {
			teamIDs = append(teamIDs, t.id)
		}
	}
	if len(changed.all) == 0 {
		return nil
	}
	settings := []string{"plan_cache_mode", "force_custom_plan"}
	if together {
		settings = append(settings, "lock_timeout", togetherLockTimeout)
	}
	if err := r.store.set(ctx, tx, settings...); err != nil {
		return err
	}
	l := r.store.newLatestSearch(tx, teamIDs, r.hours.To)
	silent, err := l.searchRecent(ctx, readingIDs(changed.all))
	if err != nil {
		return err
	}
	if together {
		silent = r.leaveOut(silent)
	}
	if err := l.searchSilent(ctx, silent); err != nil {
		return err
	}
	return r.readSums(ctx, l, &changed)
}

// readSums keeps the newest readings that were found, and reads the sums of the current hour and of the past hours.
func (r *currentRead) readSums(ctx context.Context, l *latestSearch, changed *changedDevices) error {
	current, err := r.store.hourStats(ctx, l.tx, l.teamIDs, readingIDs(changed.all), currentHour(r.hours))
	if err != nil {
		return err
	}
	for _, d := range changed.all {
		d.latest, d.current = packReading(l.found[d.id]), packStats(current[d.id])
	}
	if len(changed.past) == 0 {
		return nil
	}
	past, err := r.store.hourStats(ctx, l.tx, l.teamIDs, readingIDs(changed.past), pastHours(r.hours))
	if err != nil {
		return err
	}
	for _, d := range changed.past {
		d.past, d.pastVersion = packStats(past[d.id]), d.version
	}
	return nil
}

func readingIDs(devices []*deviceReadings) []uuid.UUID {
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

// keep keeps the readings for the next read, and returns the devices of each team, or nil if it was left out.
func (r *currentRead) keep() [][]roomsensor.CurrentDevice {
	teams := make([][]roomsensor.CurrentDevice, len(r.teams))
	for i := range r.teams {
		t := &r.teams[i]
		if t.leftOut {
			continue
		}
		for j := range t.next.devices {
			d := &t.next.devices[j]
			t.devices[j].Latest, t.devices[j].Last24h = d.latest.reading(), d.current.stats().Plus(d.past.stats())
		}
		r.store.keepTeam(t.id, t.next)
		teams[i] = t.devices
	}
	return teams
}
