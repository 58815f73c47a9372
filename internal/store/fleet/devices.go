package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// FirstTagBytes is what the first portion of a page assumes of the tags of a device. All tags of a device can have 100
// KB.
const FirstTagBytes = 64 << 10

// EachDevice calls do for every device of a page, by id, while further rows arrive. It reads them in portions, each
// with a query for those after an id. The tags in the first portion show how many devices q.MaxTagBytes has room for:
// the database would send the rows that are not needed before the connection can be used again.
func (s *Store) EachDevice(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, do func(*roomsensor.Device),
) error {
	filter, ok := MetadataFilter(q.Metadata)
	if !ok {
		return nil
	}
	maxTagBytes := cmp.Or(q.MaxTagBytes, math.MaxInt32)
	read, tagBytes := 0, 0
	for mean := FirstTagBytes; ; mean = tagBytes/read + 1 {
		portion := min(max(0, maxTagBytes-tagBytes)/mean+1, q.Limit-read)
		rows, err := s.Pool.Query(ctx, db.DeviceList, pg.Positional(db.DeviceListParams{
			TeamID: teamID, Metadata: filter, After: q.After, Most: int64(portion),
		})...)
		if err != nil {
			return fmt.Errorf("listing devices: %w", pg.Translate(err))
		}
		n, err := eachDeviceRow(rows, func(d *roomsensor.Device) (more bool) {
			read++
			tagBytes += d.TagBytes()
			q.After = &d.ID
			do(d)
			return tagBytes <= maxTagBytes || read == 1
		})
		if err != nil {
			return fmt.Errorf("listing devices: %w", pg.Translate(err))
		}
		if n < portion || read == q.Limit || tagBytes > maxTagBytes && read > 1 {
			return nil
		}
	}
}

// eachDeviceRow calls do for the device in each row of device_details until it returns false, and returns the number of
// calls.
func eachDeviceRow(rows pgx.Rows, do func(*roomsensor.Device) (more bool)) (n int, err error) {
	defer rows.Close()
	for more := true; more && rows.Next(); n++ {
		row, err := pgx.RowToAddrOfStructByPos[db.DeviceDetail](rows)
		if err != nil {
			return n, err
		}
		d, err := Device(row)
		if err != nil {
			return n, err
		}
		more = do(&d)
	}
	rows.Close()
	return n, rows.Err()
}

// MetadataFilter returns the tags as a JSON object. ok is false if no device can match, because the database cannot
// store such a tag.
func MetadataFilter(tags map[string]string) (filter []byte, ok bool) {
	for key, value := range tags {
		if !roomsensor.IsPlain(key) || !roomsensor.IsPlain(value) {
			return nil, false
		}
	}
	if len(tags) == 0 {
		return []byte("{}"), true
	}
	filter, err := json.Marshal(tags)
	return filter, err == nil
}

// Device returns a device of a team.
func (s *Store) Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error) {
	return s.device(ctx, s.Pool, teamID, deviceID)
}

func (s *Store) device(ctx context.Context, conn db.DBTX, teamID, deviceID uuid.UUID) (roomsensor.Device, error) {
	row, err := s.Queries.DeviceGet(ctx, conn, db.DeviceGetParams{TeamID: teamID, DeviceID: deviceID})
	if err != nil {
		return roomsensor.Device{}, fmt.Errorf("reading a device: %w", pg.Translate(err))
	}
	return Device(&row)
}

// DeviceNames lists all devices of a team by id. The column names of an export depend on all of them (decision 29).
func (s *Store) DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error) {
	rows, err := s.Queries.DeviceNameList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing device names: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.DeviceNameListRow) roomsensor.NamedDevice {
		return roomsensor.NamedDevice{ID: row.ID, DisplayName: row.DisplayName, Retired: row.Retired}
	}), nil
}

// TaggedDevices lists the ids of a team's devices that have all of some tags (decision 18), ascending.
func (s *Store) TaggedDevices(ctx context.Context, teamID uuid.UUID, tags map[string]string) ([]uuid.UUID, error) {
	filter, ok := MetadataFilter(tags)
	if !ok {
		return nil, nil
	}
	ids, err := s.Queries.DeviceTaggedList(ctx, s.Pool, db.DeviceTaggedListParams{TeamID: teamID, Metadata: filter})
	if err != nil {
		return nil, fmt.Errorf("listing tagged devices: %w", pg.Translate(err))
	}
	return ids, nil
}

// Device converts a row of device_details.
func Device(row *db.DeviceDetail) (roomsensor.Device, error) {
	d := roomsensor.Device{
		ID: row.ID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, LastSeenAt: row.LastSeenAt,
		Signal: roomsensor.Signal{RSSI: row.RssiDbm, Bars: row.SignalBars}, RetiredAt: pg.UTC(row.RetiredAt),
	}
	if row.AssignmentID != nil {
		d.ActiveAssignment = &roomsensor.Assignment{
			ID: *row.AssignmentID, DeviceID: row.ID, Label: *row.Label,
			Type:      roomsensor.AssignmentType(*row.AssignmentType),
			StartedAt: row.StartedAt.UTC(), ExternalRef: row.ExternalRef,
		}
	}
	if err := json.Unmarshal(row.Metadata, &d.Metadata); err != nil {
		return d, fmt.Errorf("reading metadata of device %s: %w", row.ID, err)
	}
	return d, nil
}

// deviceUpdater is a roomsensor.DeviceUpdater on a pool or in a transaction.
type deviceUpdater struct {
	store *Store
	conn  interface {
		db.DBTX
		SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	}
}

// UpdateDevice applies a patch to a device of a team and returns the changed device. Errors are ErrNotFound,
// validation_failed if the device would have more than MaxMetadataKeys tags, and overloaded.
func (s *Store) UpdateDevice(
	ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
) (roomsensor.Device, error) {
	actor, _ := roomsensor.ActorOf(ctx)
	turn, err := s.waitForDevice(ctx, teamID, deviceID.String(), time.Now().Add(changeWait))
	if err != nil {
		return roomsensor.Device{}, err
	}
	defer turn.Release()
	if actor.Right == nil {
		return deviceUpdater{s, s.Pool}.UpdateDevice(ctx, teamID, deviceID, patch)
	}
	var changed roomsensor.Device
	err = s.InChange(ctx, "changing a device", func(tx pgx.Tx) (err error) {
		changed, err = deviceUpdater{s, tx}.applyPatch(ctx, teamID, deviceID, patch)
		return err
	})
	return changed, err
}

func (u deviceUpdater) UpdateDevice(
	ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
) (roomsensor.Device, error) {
	changed, err := u.applyPatch(ctx, teamID, deviceID, patch)
	if err != nil {
		return roomsensor.Device{}, fmt.Errorf("changing a device: %w", pg.Translate(err))
	}
	return changed, nil
}

// applyPatch changes a device in one statement, so that concurrent patches are all applied. If that changed nothing, it
// finds out why. If it finds no reason twice, the device changed meanwhile: a client can try again.
func (u deviceUpdater) applyPatch(
	ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
) (roomsensor.Device, error) {
	params, err := updateParams(teamID, deviceID, patch)
	if err != nil {
		return roomsensor.Device{}, err
	}
	params.Actor = pg.ActorText(ctx)
	for range 2 {
		row, err := u.update(ctx, params)
		if err == nil {
			return Device(new(db.DeviceDetail(row)))
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return roomsensor.Device{}, err
		}
		before, err := u.store.device(ctx, u.conn, teamID, deviceID)
		if err != nil {
			return roomsensor.Device{}, err
		}
		if n := len(patch.Metadata.Apply(before.Metadata)); n > roomsensor.MaxMetadataKeys {
			return roomsensor.Device{}, roomsensor.Invalid("metadata", fmt.Sprintf(
				"metadata would have %d keys; at most %d are allowed. Remove some by sending them as null.",
				n, roomsensor.MaxMetadataKeys))
		}
		// Try again: another request removed tags between the two statements.
	}
	return roomsensor.Device{}, pg.Overloaded(errors.New("the device changed between two statements, twice"))
}

// update changes a device in one round trip. A statement of its own locks the device: a statement that waits for the
// transfer of an assignment sees the assignments as they were before.
func (u deviceUpdater) update(ctx context.Context, params db.DeviceUpdateParams) (row db.DeviceUpdateRow, err error) {
	var batch pgx.Batch
	batch.Queue(db.DeviceLock, params.TeamID, params.DeviceID)
	batch.Queue(db.DeviceUpdate, pg.Positional(params)...).Query(func(rows pgx.Rows) error {
		var err error
		row, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[db.DeviceUpdateRow])
		return err //nolint:wrapcheck // The callers wrap it.
	})
	err = u.conn.SendBatch(ctx, &batch).Close()
	return row, err //nolint:wrapcheck // The callers wrap it.
}

func updateParams(teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch) (db.DeviceUpdateParams, error) {
	removed, set := []string{}, map[string]string{}
	for key, value := range patch.Metadata.Values {
		if value == nil {
			removed = append(removed, key)
		} else {
			set[key] = *value
		}
	}
	tags, err := json.Marshal(set)
	if err != nil {
		return db.DeviceUpdateParams{}, fmt.Errorf("encoding metadata: %w", err)
	}
	return db.DeviceUpdateParams{
		TeamID: teamID, DeviceID: deviceID,
		SetDisplayName: patch.SetDisplayName, NewName: patch.DisplayName,
		Clear: patch.Metadata.Clear, Tags: tags, RemovedTags: removed,
		ChangeTags: len(patch.Metadata.Values) > 0, MostTags: roomsensor.MaxMetadataKeys,
	}, nil
}

// OwnedDevice is a device with its team.
type OwnedDevice struct {
	roomsensor.Device
	TeamID uuid.UUID
}

// CreateDevice creates a device with a hardware unit. It returns a HardwareConflictError if the unit is installed
// elsewhere.
func (s *Store) CreateDevice(
	ctx context.Context, d roomsensor.NewDevice, now time.Time,
) (created OwnedDevice, err error) {
	err = s.InChange(ctx, "creating a device", func(tx pgx.Tx) error {
		id, err := s.insertDevice(ctx, tx, d, now)
		if err != nil {
			return err
		}
		created, err = s.ownedDevice(ctx, tx, id)
		return err
	})
	return created, err
}

// RegisterUnit is CreateDevice without the device: it returns its id.
func (s *Store) RegisterUnit(ctx context.Context, d roomsensor.NewDevice, now time.Time) (id uuid.UUID, err error) {
	err = s.InChange(ctx, "registering a unit", func(tx pgx.Tx) error {
		id, err = s.insertDevice(ctx, tx, d, now)
		return err
	})
	return id, err
}

// insertDevice inserts a device and installs its unit.
func (s *Store) insertDevice(ctx context.Context, tx pgx.Tx, d roomsensor.NewDevice, now time.Time) (uuid.UUID, error) {
	metadata := []byte("{}")
	if len(d.Metadata) > 0 {
		var err error
		if metadata, err = json.Marshal(d.Metadata); err != nil {
			return uuid.Nil, fmt.Errorf("encoding metadata: %w", err)
		}
	}
	var err error
	if d.HardwareID, err = s.unitNamed(ctx, tx, d.TeamID, d.HardwareID); err != nil {
		return uuid.Nil, err
	}
	from, err := s.installationTime(ctx, tx, d, now)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := s.Queries.DeviceInsert(ctx, tx, db.DeviceInsertParams{
		TeamID: d.TeamID, HardwareID: d.HardwareID, DisplayName: d.DisplayName, Metadata: metadata,
	})
	if err != nil {
		return uuid.Nil, pg.TranslateInsert(err, "inserting a device", d.TeamID)
	}
	if d.Sampling == roomsensor.SamplingMean {
		if err := s.setSampling(ctx, tx, d.TeamID, id, d.Sampling); err != nil {
			return uuid.Nil, err
		}
	}
	return id, s.installHardware(ctx, tx, d.TeamID, id, d.HardwareID, from)
}

func (s *Store) installationTime(
	ctx context.Context, tx pgx.Tx, d roomsensor.NewDevice, now time.Time,
) (*time.Time, error) {
	if d.InstalledAt != nil {
		return d.InstalledAt, nil
	}
	known, err := s.Queries.HardwareExists(ctx, tx, d.HardwareID)
	if err != nil || !known {
		return nil, err
	}
	return &now, nil
}

// TeamDevices lists the devices of a team that are retired, or those that are not, by id.
func (s *Store) TeamDevices(ctx context.Context, teamID uuid.UUID, retired bool) ([]OwnedDevice, error) {
	if _, err := s.Team(ctx, teamID); err != nil {
		return nil, err
	}
	rows, err := s.Queries.DeviceListByTeam(ctx, s.Pool, db.DeviceListByTeamParams{TeamID: teamID, Retired: retired})
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", pg.Translate(err))
	}
	return pg.TryConvert(rows, ownedDevice)
}

// OwnedDevice returns a device of any team.
func (s *Store) OwnedDevice(ctx context.Context, deviceID uuid.UUID) (OwnedDevice, error) {
	return s.ownedDevice(ctx, s.Pool, deviceID)
}

// DevicesNamed lists devices with a name, of one team or, if ofTeam is nil, of all, and at most maxNamesakes of them.
// They have only ids.
func (s *Store) DevicesNamed(ctx context.Context, ofTeam *uuid.UUID, name string) ([]OwnedDevice, error) {
	rows, err := s.Queries.DeviceListByName(ctx, s.Pool, db.DeviceListByNameParams{
		Name: name, OfTeam: ofTeam, Most: maxNamesakes,
	})
	if err != nil {
		return nil, fmt.Errorf("finding a device: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.DeviceListByNameRow) OwnedDevice {
		return OwnedDevice{TeamID: row.TeamID, Device: roomsensor.Device{ID: row.ID, HardwareID: row.HardwareID}}
	}), nil
}

// DeviceOfUnit returns the id of the device, of one team or, if ofTeam is nil, of any, in which a unit is installed.
func (s *Store) DeviceOfUnit(ctx context.Context, ofTeam *uuid.UUID, hardwareID string) (uuid.UUID, error) {
	id, err := s.Queries.DeviceGetByUnit(ctx, s.Pool, db.DeviceGetByUnitParams{HardwareID: hardwareID, OfTeam: ofTeam})
	if err != nil {
		return uuid.Nil, fmt.Errorf("finding the device of a unit: %w", pg.Translate(err))
	}
	return id, nil
}

// ownedDevice returns a device of any team.
func (s *Store) ownedDevice(ctx context.Context, conn db.DBTX, deviceID uuid.UUID) (OwnedDevice, error) {
	row, err := s.Queries.DeviceGetByID(ctx, conn, deviceID)
	if err != nil {
		return OwnedDevice{}, pg.TranslateByID(err, "reading a device", roomsensor.KindDevice, deviceID.String())
	}
	return ownedDevice(&row)
}

func ownedDevice(row *db.DeviceDetail) (OwnedDevice, error) {
	d, err := Device(row)
	return OwnedDevice{Device: d, TeamID: row.TeamID}, err
}
