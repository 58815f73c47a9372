package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Devices lists a page of a team's devices.
func (s *Store) Devices(ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery) ([]roomsensor.Device, error) {
	filter, ok := metadataFilter(q.Metadata)
	if !ok {
		return []roomsensor.Device{}, nil
	}
	rows, err := s.queries.DeviceList(ctx, s.pool, db.DeviceListParams{
		TeamID: teamID, Metadata: filter, After: q.After, Most: int64(q.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", translate(err))
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

// CurrentDevices lists a page of the live snapshot: the newest reading of each
// device by bucket, and what whole hours sum up to (decision 17).
func (s *Store) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) (devices []roomsensor.CurrentDevice, err error) {
	filter, ok := metadataFilter(q.Metadata)
	if !ok {
		return []roomsensor.CurrentDevice{}, nil
	}
	err = s.inSnapshot(ctx, "reading the snapshot", func(tx pgx.Tx) error {
		// A generic plan reads the hours of every device, not of those asked for.
		if err := s.set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
			return err
		}
		rows, err := s.queries.DeviceCurrentList(ctx, tx, db.DeviceCurrentListParams{
			TeamID: teamID, Metadata: filter, After: q.After, Most: int64(q.Limit),
		})
		if err != nil {
			return err
		}
		if devices, err = convertAll(rows, currentDevice); err != nil {
			return err
		}
		ids := mapped(devices, func(d *roomsensor.CurrentDevice) uuid.UUID { return d.ID })
		stats, err := s.hourStats(ctx, tx, teamID, ids, hours)
		for i := range devices {
			devices[i].Last24h = stats[devices[i].ID]
		}
		return err
	})
	return devices, err
}

func currentDevice(row *db.DeviceCurrentListRow) (roomsensor.CurrentDevice, error) {
	d, err := device(&db.DeviceGetRow{
		ID: row.ID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, Metadata: row.Metadata, LastSeenAt: row.LastSeenAt,
		RssiDbm: row.RssiDbm, SignalBars: row.SignalBars,
		AssignmentID: row.AssignmentID, Label: row.Label, StartedAt: row.StartedAt, ExternalRef: row.ExternalRef,
	})
	current := roomsensor.CurrentDevice{Device: d}
	if err != nil || !row.HasLatest {
		return current, err
	}
	latest := roomsensor.Reading{BucketAt: row.BucketAt.UTC(), IngestedAt: row.IngestedAt.UTC()}
	for m, x := range [roomsensor.MetricCount]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb} {
		if x != nil {
			latest.Values.Set(roomsensor.Metric(m), *x)
		}
	}
	current.Latest = &latest
	return current, nil
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
