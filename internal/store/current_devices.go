package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

// firstChanged is how many changed devices are read in the first portion. All tags of a device can have 100 KB.
const firstChanged = 200

// readTeamDevices reads the versions of the devices of all teams, and the devices that changed. It leaves out teams
// with too many devices or tags.
func (r *currentRead) readTeamDevices(ctx context.Context, tx pgx.Tx) error {
	began := time.Now()
	if err := r.listVersions(ctx, tx); err != nil {
		return err
	}
	r.listing = time.Since(began)
	var changed []changedDevice
	for i := range r.teams {
		t := &r.teams[i]
		if t.leftOut = len(t.next.devices) > r.maxDevices; t.leftOut {
			continue
		}
		t.next.source = r.source
		if t.kept = cmp.Or(t.kept, r.store.kept.Kept(t.id)); t.kept.isFrom(&r.source) {
			t.next.until = t.kept.until
		} else {
			t.kept = nil
		}
		changed = append(changed, r.takeDevices(t)...)
	}
	return r.readChanged(ctx, tx, changed)
}

// listVersions reads the versions of at most maxDevices devices of each team and one more.
func (r *currentRead) listVersions(ctx context.Context, tx pgx.Tx) error {
	byID := make(map[uuid.UUID]*currentTeam, len(r.teams))
	for i := range r.teams {
		byID[r.teams[i].id] = &r.teams[i]
	}
	rows, err := tx.Query(ctx, db.DeviceVersionListOfTeams, pg.Positional(db.DeviceVersionListOfTeamsParams{
		TeamIds: r.teamIDs(), Most: int64(r.maxDevices) + 1,
	})...)
	if err != nil {
		return err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
	}
	defer rows.Close()
	for rows.Next() {
		teamID, d := decodeVersions(rows)
		next := byID[teamID].next
		next.devices = append(next.devices, d)
		if source, ok, err := decodeSource(rows); err != nil {
			return err
		} else if ok {
			r.source = source
		}
	}
	for i := range r.teams {
		slices.SortFunc(r.teams[i].next.devices, func(a, b keptDevice) int { return bytes.Compare(a.id[:], b.id[:]) })
	}
	return rows.Err()
}

// decodeVersions decodes the device in a row of DeviceVersionListOfTeams.
func decodeVersions(rows pgx.Rows) (teamID uuid.UUID, d keptDevice) {
	const id, team, version, assignmentVersion, latestBucketAt, mergeVersion = 0, 1, 2, 3, 4, 5
	c := rows.RawValues()
	d.id, d.versions.device, d.mergeVersion = uuid.UUID(c[id]), binary.BigEndian.Uint32(c[version]), mergeUnknown
	if c[assignmentVersion] != nil {
		d.versions.assignment = binary.BigEndian.Uint32(c[assignmentVersion])
	}
	if c[latestBucketAt] != nil {
		d.mergeVersion = pg.DecodeInt64(c[mergeVersion])
		d.bound = pg.DecodeMicros(c[latestBucketAt])
	}
	return uuid.UUID(c[team]), d
}

// decodeSource decodes the source of the readings, which one row of DeviceVersionListOfTeams has.
func decodeSource(rows pgx.Rows) (source readingsSource, ok bool, err error) {
	const serverStart, writers, chunks = 6, 7, 8
	c := rows.RawValues()
	if c[chunks] == nil {
		return source, false, nil
	}
	source.serverStart, source.writers = pg.DecodeTime(c[serverStart]), pg.DecodeInt64(c[writers])
	err = rows.Scan(nil, nil, nil, nil, nil, nil, nil, nil, &source.chunks)
	return source, true, err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
}

// changedDevice is a device of a team that must be read: the one at index.
type changedDevice struct {
	team  *currentTeam
	index int
}

// takeDevices copies the devices that did not change from what was kept, and returns the others.
func (r *currentRead) takeDevices(t *currentTeam) (changed []changedDevice) {
	t.devices = make([]roomsensor.CurrentDevice, len(t.next.devices))
	for i := range t.next.devices {
		d := &t.next.devices[i]
		if before := t.kept.find(d.id); before != nil && before.versions == d.versions {
			d.packed = before.packed
			unpacked := d.packed.unpack(d.id)
			r.setDevice(t, i, &unpacked)
		} else {
			changed = append(changed, changedDevice{t, i})
		}
	}
	return changed
}

// setDevice sets a device, and leaves out the team if it has too many tags.
func (r *currentRead) setDevice(t *currentTeam, i int, d *roomsensor.Device) {
	t.devices[i].Device = *d
	t.tagBytes += d.TagBytes()
	t.leftOut = t.tagBytes > r.maxTagBytes
}

// readChanged reads devices in portions, each at most twice as large as the one before, because the database also sends
// those of a team that is left out meanwhile.
func (r *currentRead) readChanged(ctx context.Context, tx pgx.Tx, changed []changedDevice) error {
	for most := firstChanged; ; most *= 2 {
		changed = slices.DeleteFunc(changed, func(c changedDevice) bool { return c.team.leftOut })
		if len(changed) == 0 {
			return nil
		}
		if err := r.setParameters(ctx, tx); err != nil {
			return err
		}
		portion := changed[:min(most, len(changed))]
		if err := r.readPortionOfChanged(ctx, tx, portion); err != nil {
			return err
		}
		changed = changed[len(portion):]
	}
}

func (r *currentRead) readPortionOfChanged(ctx context.Context, tx pgx.Tx, changed []changedDevice) error {
	p, byID := db.DeviceListByIDsParams{TeamIds: r.teamIDs()}, make(map[uuid.UUID]changedDevice, len(changed))
	for _, c := range changed {
		id := c.team.next.devices[c.index].id
		p.DeviceIds = append(p.DeviceIds, id)
		byID[id] = c
	}
	rows, err := tx.Query(ctx, db.DeviceListByIDs, pg.Positional(p)...)
	if err != nil {
		return err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
	}
	_, err = fleet.EachDeviceRow(rows, func(d *roomsensor.Device) (more bool) {
		if c := byID[d.ID]; !c.team.leftOut {
			c.team.next.devices[c.index].packed = packDevice(d)
			r.setDevice(c.team, c.index, d)
		}
		return r.together || !r.teams[0].leftOut
	})
	return err
}

// packedDevice is a device without its id, in about a quarter of the memory of a roomsensor.Device and without pointers
// for the garbage collector to follow: a byte that tells which fields are not null, numbers as varints, and texts after
// their length.
type packedDevice string

// The bits of the first byte of a packedDevice: fields that are not null.
const (
	hasName = 1 << iota
	hasFirmware
	hasSeen
	hasRSSI
	hasBars
	hasAssignment
	hasRef
)

func packDevice(d *roomsensor.Device) packedDevice {
	mask := byte(0)
	var p []byte
	number := func(n int64) { p = binary.AppendVarint(p, n) }
	text := func(s string) {
		number(int64(len(s)))
		p = append(p, s...)
	}
	optional := func(bit byte, s *string) {
		if s != nil {
			mask |= bit
			text(*s)
		}
	}
	text(d.HardwareID)
	optional(hasName, d.DisplayName)
	optional(hasFirmware, d.FirmwareVersion)
	if d.LastSeenAt != nil {
		mask |= hasSeen
		number(d.LastSeenAt.UnixMicro())
	}
	if d.Signal.RSSI != nil {
		mask |= hasRSSI
		number(int64(*d.Signal.RSSI))
	}
	if d.Signal.Bars != nil {
		mask |= hasBars
		number(int64(*d.Signal.Bars))
	}
	if a := d.ActiveAssignment; a != nil {
		mask |= hasAssignment
		p = append(p, a.ID[:]...)
		text(a.Label)
		number(a.StartedAt.UnixMicro())
		optional(hasRef, a.ExternalRef)
	}
	number(int64(len(d.Metadata)))
	for key, value := range d.Metadata {
		text(key)
		text(value)
	}
	return packedDevice(append([]byte{mask}, p...))
}

// unpack is the inverse of packDevice. The texts of the device share the memory of p.
func (p packedDevice) unpack(id uuid.UUID) roomsensor.Device {
	mask, rest := p[0], packedFields(p[1:])
	has := func(bit byte) bool { return mask&bit != 0 }
	d := roomsensor.Device{ID: id, HardwareID: rest.text()}
	if has(hasName) {
		d.DisplayName = new(rest.text())
	}
	if has(hasFirmware) {
		d.FirmwareVersion = new(rest.text())
	}
	if has(hasSeen) {
		d.LastSeenAt = new(rest.time())
	}
	if has(hasRSSI) {
		d.Signal.RSSI = new(int32(rest.number())) //nolint:gosec // It was an int32.
	}
	if has(hasBars) {
		d.Signal.Bars = new(int16(rest.number())) //nolint:gosec // It was an int16.
	}
	if has(hasAssignment) {
		a := &roomsensor.Assignment{ID: uuid.UUID([]byte(rest[:16])), DeviceID: id}
		rest = rest[16:]
		a.Label, a.StartedAt = rest.text(), rest.time()
		if has(hasRef) {
			a.ExternalRef = new(rest.text())
		}
		d.ActiveAssignment = a
	}
	tags := rest.number()
	d.Metadata = make(map[string]string, tags)
	for range tags {
		key := rest.text()
		d.Metadata[key] = rest.text()
	}
	return d
}

// packedFields are the fields of a packedDevice that were not taken yet.
type packedFields string

// number takes a number from the front.
func (f *packedFields) number() int64 {
	n, length := binary.Varint([]byte((*f)[:min(len(*f), binary.MaxVarintLen64)]))
	*f = (*f)[length:]
	return n
}

func (f *packedFields) time() time.Time { return time.UnixMicro(f.number()).UTC() }

// text takes a text from the front.
func (f *packedFields) text() string {
	length := f.number()
	text := string((*f)[:length])
	*f = (*f)[length:]
	return text
}
