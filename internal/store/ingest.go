package store

import (
	"context"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Installations lists where some units sat, and when (decision 40). A unit
// that never sat anywhere is not in the map.
func (s *Store) Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error) {
	rows, err := s.queries.HardwareList(ctx, s.pool, hardwareIDs)
	if err != nil {
		return nil, fmt.Errorf("looking units up: %w", translate(err))
	}
	units := make(map[string][]roomsensor.Installation)
	for _, row := range rows {
		units[row.HardwareID] = append(units[row.HardwareID], roomsensor.Installation{
			HardwareID: row.HardwareID, DeviceID: row.DeviceID, TeamID: row.TeamID,
			From: row.InstalledAt, To: row.RemovedAt,
		})
	}
	return units, nil
}

// WriteBatch stores a batch in one transaction and tells how many rows of
// readings changed. Errors that are ErrNotStorable will stay, ErrTooMuch may
// pass in parts, every other one may pass later.
func (s *Store) WriteBatch(ctx context.Context, b roomsensor.Batch) (changed int64, err error) {
	err = s.inWrite(ctx, func(tx pgx.Tx) error {
		changed, err = s.writeBatch(ctx, tx, b)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("storing a batch: %w", translateWrite(err))
	}
	return changed, nil
}

// WriteReplay stores what a replayed reject gave and notes the time of the
// replay; rejects of the batch itself are not kept again (decision 41).
func (s *Store) WriteReplay(ctx context.Context, rejectID uuid.UUID, b roomsensor.Batch) error {
	b.Rejects = nil
	err := s.inWrite(ctx, func(tx pgx.Tx) error {
		if _, err := s.writeBatch(ctx, tx, b); err != nil {
			return err
		}
		return s.queries.RejectMarkReplayed(ctx, tx, rejectID)
	})
	if err != nil {
		return fmt.Errorf("storing a replay: %w", translateWrite(err))
	}
	return nil
}

func (s *Store) writeBatch(ctx context.Context, tx pgx.Tx, b roomsensor.Batch) (changed int64, err error) {
	if len(b.Rows) > 0 {
		if changed, err = s.upsert(ctx, tx, b.Rows); err != nil {
			return 0, err
		}
	}
	if err := s.writeSeen(ctx, tx, b.Seen); err != nil {
		return 0, err
	}
	if len(b.Rejects) == 0 {
		return changed, nil
	}
	return changed, s.queries.RejectInsert(ctx, tx, rejectParams(b.Rejects))
}

func (s *Store) writeSeen(ctx context.Context, tx pgx.Tx, seen []roomsensor.DeviceSeen) error {
	if len(seen) == 0 {
		return nil
	}
	p := seenParams(seen)
	if err := s.queries.DeviceLockSeen(ctx, tx, p.DeviceIds); err != nil {
		return err
	}
	return s.queries.DeviceSeen(ctx, tx, p)
}

// What stands for null in the arrays of DeviceSeen.
const (
	noRSSI = math.MinInt32
	noBars = -1
)

func seenParams(seen []roomsensor.DeviceSeen) (p db.DeviceSeenParams) {
	for i := range seen {
		d := &seen[i]
		p.DeviceIds = append(p.DeviceIds, d.DeviceID)
		p.SeenAt = append(p.SeenAt, d.LastSeenAt)

		rssi, bars := int32(noRSSI), int16(noBars)
		if d.Signal != nil && d.Signal.RSSI != nil {
			rssi = *d.Signal.RSSI
		}
		if d.Signal != nil && d.Signal.Bars != nil {
			bars = *d.Signal.Bars
		}
		p.HasSignal = append(p.HasSignal, d.Signal != nil)
		p.SignalAt = append(p.SignalAt, d.SignalAt)
		p.RssiDbm = append(p.RssiDbm, rssi)
		p.SignalBars = append(p.SignalBars, bars)

		var firmware string
		if d.Firmware != nil {
			firmware = *d.Firmware
		}
		p.HasFirmware = append(p.HasFirmware, d.Firmware != nil)
		p.FirmwareAt = append(p.FirmwareAt, d.FirmwareAt)
		p.Firmware = append(p.Firmware, firmware)
	}
	return p
}

func rejectParams(rejects []roomsensor.Reject) (p db.RejectInsertParams) {
	for i := range rejects {
		r := &rejects[i]
		p.ReceivedAt = append(p.ReceivedAt, r.Arrival.At)
		p.StreamSequence = append(p.StreamSequence, int64(r.Arrival.Sequence)) //nolint:gosec // Counts from 1.
		p.Reason = append(p.Reason, string(r.Reason))
		p.Detail = append(p.Detail, r.Detail)
		team, hardware := uuid.Nil, ""
		if r.Arrival.Team != nil {
			team = *r.Arrival.Team
		}
		if r.HardwareID != nil {
			hardware = *r.HardwareID
		}
		p.TeamID = append(p.TeamID, team)
		p.HardwareID = append(p.HardwareID, hardware)
		p.Payload = append(p.Payload, r.Payload)
	}
	return p
}
