package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// keptDevice is what was read of a device, without its readings.
type keptDevice struct {
	id       uuid.UUID
	versions deviceVersions
	packed   packedDevice
}

// deviceVersions are the versions (xmin) of what device_details has of a device. As long as they are the same, so is
// the device.
type deviceVersions struct {
	device     uint32
	assignment uint32 // 0 without an open assignment
}

// missingDevice is a device of a team that must be read: the one at index.
type missingDevice struct {
	team  *currentTeam
	index int
}

// readTeamDevices reads the devices of all teams, of those that did not change only their versions. It leaves out
// teams with more than q.Limit devices or q.MaxTagBytes of tags.
func (r *currentRead) readTeamDevices(ctx context.Context, tx pgx.Tx, q roomsensor.DeviceQuery) error {
	if err := r.listVersions(ctx, tx, q.Limit); err != nil {
		return err
	}
	maxTagBytes := cmp.Or(q.MaxTagBytes, math.MaxInt32)
	var missing []missingDevice
	for i := range r.teams {
		t := &r.teams[i]
		if t.leftOut = len(t.next.devices) > q.Limit; t.leftOut {
			continue
		}
		t.next.source = r.source
		if t.kept = cmp.Or(t.kept, r.store.kept.Kept(t.id)); !t.kept.isOf(&r.source) {
			t.kept = nil
		}
		missing = append(missing, t.takeDevices()...)
		t.leftOut = t.tagBytes > maxTagBytes
	}
	return r.readMissingDevices(ctx, tx, missing, maxTagBytes)
}

// listVersions reads the versions of at most some devices of each team and one more.
func (r *currentRead) listVersions(ctx context.Context, tx pgx.Tx, limit int) error {
	byID := make(map[uuid.UUID]*currentTeam, len(r.teams))
	for i := range r.teams {
		byID[r.teams[i].id] = &r.teams[i]
	}
	rows, err := tx.Query(ctx, db.DeviceVersionListOfTeams, positional(db.DeviceVersionListOfTeamsParams{
		TeamIds: r.teamIDs(), Most: int64(limit) + 1,
	})...)
	if err != nil {
		return err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
	}
	defer rows.Close()
	for rows.Next() {
		if err := r.addVersions(byID, rows); err != nil {
			return err
		}
	}
	for i := range r.teams {
		next := r.teams[i].next
		slices.SortFunc(next.devices, func(a, b keptDevice) int { return bytes.Compare(a.id[:], b.id[:]) })
		slices.SortFunc(next.readings, func(a, b deviceReadings) int { return bytes.Compare(a.id[:], b.id[:]) })
	}
	return rows.Err() //nolint:wrapcheck // The callers of readTeamDevices wrap it.
}

// addVersions adds a row of DeviceVersionListOfTeams.
func (r *currentRead) addVersions(byID map[uuid.UUID]*currentTeam, rows pgx.Rows) error {
	const id, team, device, assignment, latestBucketAt, mergeVersion, chunks = 0, 1, 2, 3, 4, 5, 8
	c := rows.RawValues()
	if c[chunks] != nil {
		var row db.DeviceVersionListOfTeamsRow
		err := rows.Scan(nil, nil, nil, nil, nil, nil, &row.ServerStartedAt, &row.Writers, &row.Chunks)
		if err != nil {
			return err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
		}
		r.source = readingsSource{row.ServerStartedAt, row.Writers, row.Chunks}
	}
	d := keptDevice{id: uuid.UUID(c[id])}
	d.versions.device = binary.BigEndian.Uint32(c[device])
	if c[assignment] != nil {
		d.versions.assignment = binary.BigEndian.Uint32(c[assignment])
	}
	readings := deviceReadings{id: d.id, version: d.versions.device, mergeVersion: mergeUnknown}
	if c[latestBucketAt] != nil {
		readings.mergeVersion = int64(binary.BigEndian.Uint64(c[mergeVersion])) //nolint:gosec // Two's complement.
		readings.bound = decodeMicros(c[latestBucketAt])
	}
	next := byID[uuid.UUID(c[team])].next
	next.devices, next.readings = append(next.devices, d), append(next.readings, readings)
	return nil
}

// takeDevices copies the devices that did not change from what was kept, and returns the others.
func (t *currentTeam) takeDevices() (missing []missingDevice) {
	t.devices = make([]roomsensor.CurrentDevice, len(t.next.devices))
	for i := range t.next.devices {
		d := &t.next.devices[i]
		if before := t.kept.findDevice(d.id); before != nil && before.versions == d.versions {
			d.packed = before.packed
			unpacked := d.packed.unpack(d.id)
			t.setDevice(i, &unpacked)
		} else {
			missing = append(missing, missingDevice{t, i})
		}
	}
	return missing
}

func (t *currentTeam) setDevice(i int, d *roomsensor.Device) {
	t.devices[i].Device = *d
	t.tagBytes += d.TagBytes()
}

// readMissingDevices reads devices in portions. The tags in one show how many devices the next one has room for: the
// database would send the devices of a team that is left out, too.
func (r *currentRead) readMissingDevices(
	ctx context.Context, tx pgx.Tx, missing []missingDevice, maxTagBytes int,
) error {
	room := maxTagBytes * len(r.teams)
	read, tagBytes := 0, 0
	for mean := firstTagBytes; ; mean = tagBytes/read + 1 {
		missing = slices.DeleteFunc(missing, func(m missingDevice) bool { return m.team.leftOut })
		if len(missing) == 0 {
			return nil
		}
		portion := missing[:min(max(0, room-tagBytes)/mean+1, len(missing))]
		n, err := r.readPortionOfDevices(ctx, tx, portion)
		if err != nil {
			return err
		}
		for _, m := range portion {
			m.team.leftOut = m.team.tagBytes > maxTagBytes
		}
		missing, read, tagBytes = missing[len(portion):], read+len(portion), tagBytes+n
	}
}

// readPortionOfDevices reads devices and returns their TagBytes.
func (r *currentRead) readPortionOfDevices(
	ctx context.Context, tx pgx.Tx, devices []missingDevice,
) (tagBytes int, err error) {
	p, byID := db.DeviceListByIDsParams{TeamIds: r.teamIDs()}, make(map[uuid.UUID]missingDevice, len(devices))
	for _, m := range devices {
		id := m.team.next.devices[m.index].id
		p.DeviceIds = append(p.DeviceIds, id)
		byID[id] = m
	}
	rows, err := tx.Query(ctx, db.DeviceListByIDs, positional(p)...)
	if err != nil {
		return 0, err //nolint:wrapcheck // The callers of readTeamDevices wrap it.
	}
	_, err = eachDeviceOf(rows, func(d *roomsensor.Device) (more bool) {
		m := byID[d.ID]
		m.team.next.devices[m.index].packed = packDevice(d)
		m.team.setDevice(m.index, d)
		tagBytes += d.TagBytes()
		return true
	})
	return tagBytes, err
}

// findDevice returns what is known of a device, or nil.
func (t *keptTeam) findDevice(id uuid.UUID) *keptDevice {
	if t == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(t.devices, id, func(d keptDevice, id uuid.UUID) int {
		return bytes.Compare(d.id[:], id[:])
	})
	if !found {
		return nil
	}
	return &t.devices[i]
}

func (d *keptDevice) bytes() int { return int(unsafe.Sizeof(*d)) + len(d.packed) }

// packedDevice is a device without its id in a few bytes: a mask of what is not null, numbers as varints, and texts
// with their length.
type packedDevice string

// What the mask of a packedDevice tells is not null.
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
	text := func(s string) { p = append(binary.AppendUvarint(p, uint64(len(s))), s...) }
	optional := func(is byte, s *string) {
		if s != nil {
			mask |= is
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
	mask, p := p[0], p[1:]
	has := func(is byte) bool { return mask&is != 0 }
	d := roomsensor.Device{ID: id, HardwareID: p.text()}
	if has(hasName) {
		d.DisplayName = new(p.text())
	}
	if has(hasFirmware) {
		d.FirmwareVersion = new(p.text())
	}
	if has(hasSeen) {
		d.LastSeenAt = new(p.time())
	}
	if has(hasRSSI) {
		d.Signal.RSSI = new(int32(p.number()))
	}
	if has(hasBars) {
		d.Signal.Bars = new(int16(p.number()))
	}
	if has(hasAssignment) {
		a := &roomsensor.Assignment{ID: uuid.UUID([]byte(p[:16])), DeviceID: id}
		p = p[16:]
		a.Label, a.StartedAt = p.text(), p.time()
		if has(hasRef) {
			a.ExternalRef = new(p.text())
		}
		d.ActiveAssignment = a
	}
	d.Metadata = make(map[string]string, p.number())
	for len(p) > 0 {
		key := p.text()
		d.Metadata[key] = p.text()
	}
	return d
}

// number takes a number from the front.
func (p *packedDevice) number() int64 {
	n, length := binary.Varint([]byte((*p)[:min(len(*p), binary.MaxVarintLen64)]))
	*p = (*p)[length:]
	return n
}

func (p *packedDevice) time() time.Time { return time.UnixMicro(p.number()).UTC() }

// text takes a text from the front.
func (p *packedDevice) text() string {
	n, length := binary.Uvarint([]byte((*p)[:min(len(*p), binary.MaxVarintLen64)]))
	text, rest := (*p)[length:length+int(n)], (*p)[length+int(n):]
	*p = rest
	return string(text)
}
