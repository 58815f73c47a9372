package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Devices lists a page of a team's devices.
func (s *Store) Devices(ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery) ([]roomsensor.Device, error) {
	filter, ok := metadataFilter(q.Metadata)
	if !ok {
		return []roomsensor.Device{}, nil
	}
	devices, err := s.devices(ctx, s.pool, teamID, q, filter)
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", translate(err))
	}
	return devices, nil
}

func (s *Store) devices(
	ctx context.Context, conn db.DBTX, teamID uuid.UUID, q roomsensor.DeviceQuery, filter []byte,
) ([]roomsensor.Device, error) {
	rows, err := s.queries.DeviceList(ctx, conn, db.DeviceListParams{
		TeamID: teamID, Metadata: filter, After: q.After, Most: int64(q.Limit),
	})
	if err != nil {
		return nil, err
	}
	return convertAll(rows, func(row *db.DeviceListRow) (roomsensor.Device, error) {
		get := db.DeviceGetRow(*row)
		return device(&get)
	})
}

// Device finds a device of a team.
func (s *Store) Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error) {
	return s.device(ctx, s.pool, teamID, deviceID)
}

func (s *Store) device(ctx context.Context, conn db.DBTX, teamID, deviceID uuid.UUID) (roomsensor.Device, error) {
	row, err := s.queries.DeviceGet(ctx, conn, db.DeviceGetParams{TeamID: teamID, DeviceID: deviceID})
	if err != nil {
		return roomsensor.Device{}, fmt.Errorf("reading a device: %w", translate(err))
	}
	return device(&row)
}

// DeviceNames lists every device of a team by id: the names of an export's
// columns depend on all of them (decision 29).
func (s *Store) DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error) {
	rows, err := s.queries.DeviceNameList(ctx, s.pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing device names: %w", translate(err))
	}
	return mapped(rows, func(row *db.DeviceNameListRow) roomsensor.NamedDevice {
		return roomsensor.NamedDevice{ID: row.ID, DisplayName: row.DisplayName}
	}), nil
}

func device(row *db.DeviceGetRow) (roomsensor.Device, error) {
	d := roomsensor.Device{
		ID: row.ID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, LastSeenAt: row.LastSeenAt,
		Signal: roomsensor.Signal{RSSI: row.RssiDbm, Bars: row.SignalBars},
	}
	if row.AssignmentID != nil {
		d.ActiveAssignment = &roomsensor.Assignment{
			ID: *row.AssignmentID, DeviceID: row.ID, Label: *row.Label,
			StartedAt: row.StartedAt.UTC(), ExternalRef: row.ExternalRef,
		}
	}
	if err := json.Unmarshal(row.Metadata, &d.Metadata); err != nil {
		return d, fmt.Errorf("reading metadata of device %s: %w", row.ID, err)
	}
	return d, nil
}

// metadataFilter is the filter as a JSON object. ok is false where nothing can
// match, as no tag holds what the database cannot store.
func metadataFilter(tags map[string]string) (filter []byte, ok bool) {
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

func convertAll[Row, T any](rows []Row, convert func(*Row) (T, error)) ([]T, error) {
	list := make([]T, len(rows))
	for i := range rows {
		var err error
		if list[i], err = convert(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
