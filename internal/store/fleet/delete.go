package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// Deletions work in short transactions, so that they hold few locks and can be interrupted at any time: what is left
// can be listed, and deleted by another run.
const (
	// deleteWindow bounds one deletion of readings: 10,080 of one device.
	deleteWindow = 35 * 24 * time.Hour
	// deleteRejects bounds one deletion of rejects, which have up to 1 MB each.
	deleteRejects = 100
	// deleteResponses bounds one deletion of stored responses, which have up to 100 KB each.
	deleteResponses = 1_000
)

// DeviceContents counts what belongs to devices.
type DeviceContents struct{ Readings, Assignments, Installations int64 }

// AddContents adds other numbers.
func (c *DeviceContents) AddContents(more DeviceContents) {
	c.Readings += more.Readings
	c.Assignments += more.Assignments
	c.Installations += more.Installations
}

// TeamContents counts what belongs to a team.
type TeamContents struct {
	DeviceContents

	Devices, APIKeys, IngestKeys, Rejects int64
}

// DeviceContents counts what belongs to a device.
func (s *Store) DeviceContents(ctx context.Context, deviceID uuid.UUID) (DeviceContents, error) {
	row, err := s.Queries.DeviceContentsGet(ctx, s.Pool, deviceID)
	if err != nil {
		return DeviceContents{}, fmt.Errorf("counting what belongs to a device: %w", pg.Translate(err))
	}
	return DeviceContents(row), nil
}

// TeamContents counts what belongs to a team. It reads the index of all readings.
func (s *Store) TeamContents(ctx context.Context, teamID uuid.UUID) (c TeamContents, err error) {
	devices, err := s.DeviceNames(ctx, teamID)
	if err != nil {
		return c, err
	}
	for i := range devices {
		one, err := s.DeviceContents(ctx, devices[i].ID)
		if err != nil {
			return c, err
		}
		c.AddContents(one)
	}
	c.Devices = int64(len(devices))
	apiKeys, err := s.Queries.APIKeyList(ctx, s.Pool, teamID)
	if err != nil {
		return c, fmt.Errorf("listing API keys: %w", pg.Translate(err))
	}
	ingestKeys, err := s.Queries.IngestKeyList(ctx, s.Pool, teamID)
	if err != nil {
		return c, fmt.Errorf("listing ingest keys: %w", pg.Translate(err))
	}
	c.APIKeys, c.IngestKeys = int64(len(apiKeys)), int64(len(ingestKeys))
	if c.Rejects, err = s.Queries.RejectUsageGet(ctx, s.Pool, teamID); err != nil {
		return c, fmt.Errorf("counting rejects: %w", pg.Translate(err))
	}
	return c, nil
}

// DeleteDevice deletes a device and what belongs to it, and returns the numbers. A worker that resolved a unit before
// the deletion stores nothing after it: its transaction holds a lock on the device, or does not find it.
func (s *Store) DeleteDevice(ctx context.Context, deviceID uuid.UUID) (deleted DeviceContents, err error) {
	err = s.InChange(ctx, "deleting the installations of a device", func(tx pgx.Tx) error {
		return s.deleteIntervals(ctx, tx, deviceID, &deleted)
	})
	if err != nil {
		return deleted, err
	}
	if err := s.deleteReadings(ctx, deviceID, &deleted.Readings); err != nil {
		return deleted, err
	}
	err = s.InChange(ctx, "deleting a device", func(tx pgx.Tx) error {
		if _, err := s.Queries.DeviceLockForDelete(ctx, tx, deviceID); err != nil {
			return pg.TranslateByID(err, "locking a device", roomsensor.KindDevice, deviceID.String())
		}
		if err := s.Queries.WorkerSet(ctx, tx); err != nil { // No foreign write: only this device changes.
			return err
		}
		// What other transactions stored meanwhile.
		if err := s.deleteIntervals(ctx, tx, deviceID, &deleted); err != nil {
			return err
		}
		n, err := s.Queries.ReadingDeleteByDevice(ctx, tx, deviceID)
		if err != nil {
			return err
		}
		deleted.Readings += n
		if err := s.Queries.SampleDeleteByDevice(ctx, tx, deviceID); err != nil {
			return err
		}
		return s.Queries.DeviceDelete(ctx, tx, deviceID)
	})
	return deleted, err
}

// deleteIntervals deletes the installations and assignments of a device.
func (s *Store) deleteIntervals(ctx context.Context, tx pgx.Tx, deviceID uuid.UUID, deleted *DeviceContents) error {
	if err := s.Queries.AliasDeleteUnused(ctx, tx, deviceID); err != nil {
		return err
	}
	installations, err := s.Queries.HardwareDeleteByDevice(ctx, tx, deviceID)
	if err != nil {
		return err
	}
	assignments, err := s.Queries.AssignmentDeleteByDevice(ctx, tx, deviceID)
	deleted.AddContents(DeviceContents{Installations: installations, Assignments: assignments})
	return err
}

// deleteReadings deletes the readings of a device with their samples, the oldest first.
func (s *Store) deleteReadings(ctx context.Context, deviceID uuid.UUID, deleted *int64) error {
	for since, more := (time.Time{}), true; more; {
		err := pgx.BeginTxFunc(ctx, s.Pool, pg.ReadCommitted, func(tx pgx.Tx) error {
			if err := s.Queries.WorkerSet(ctx, tx); err != nil {
				return err
			}
			// A generic plan would lock the chunks of all times.
			if err := s.Set(ctx, tx, "plan_cache_mode", "force_custom_plan"); err != nil {
				return err
			}
			first, err := s.Queries.ReadingGetFirst(ctx, tx, db.ReadingGetFirstParams{DeviceID: deviceID, Since: since})
			if errors.Is(err, pgx.ErrNoRows) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			since = first.Add(deleteWindow)
			rows, err := s.Queries.ReadingDeleteRange(ctx, tx, db.ReadingDeleteRangeParams{
				DeviceID: deviceID, WindowFrom: first, WindowTo: since,
			})
			*deleted += rows.Readings
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting readings: %w", pg.Translate(err))
		}
	}
	return nil
}

// RevokeTeam revokes all keys of a team and returns how long it takes until they are refused everywhere.
func (s *Store) RevokeTeam(ctx context.Context, teamID uuid.UUID) (wait time.Duration, err error) {
	err = s.InChange(ctx, "revoking the keys of a team", func(tx pgx.Tx) error {
		if err := s.Queries.TeamRevoke(ctx, tx, teamID); err != nil {
			return err
		}
		seconds, err := s.Queries.TeamGetRevoked(ctx, tx, teamID)
		// The clock may have stepped back since then.
		wait = roomsensor.RevokeDelay - time.Duration(seconds*float64(time.Second))
		wait = min(max(0, wait), roomsensor.RevokeDelay)
		return err
	})
	return wait, err
}

// DeleteTeam deletes a team that has no devices, with its keys and rejects, and returns the numbers. Its keys must be
// refused everywhere, see RevokeTeam: a process that accepts one may store more.
func (s *Store) DeleteTeam(ctx context.Context, teamID uuid.UUID) (deleted TeamContents, err error) {
	if deleted.Rejects, err = s.DeleteInParts(ctx, "deleting rejects", func(tx pgx.Tx) (int64, error) {
		return s.Queries.RejectDeleteByTeam(ctx, tx, db.RejectDeleteByTeamParams{TeamID: teamID, Most: deleteRejects})
	}); err != nil {
		return deleted, err
	}
	keys, err := s.Queries.APIKeyList(ctx, s.Pool, teamID)
	if err != nil {
		return deleted, fmt.Errorf("listing API keys: %w", pg.Translate(err))
	}
	for i := range keys {
		if err := s.deleteAPIKey(ctx, keys[i].ApiKey.KeyID); err != nil {
			return deleted, err
		}
		deleted.APIKeys++
	}
	err = s.InChange(ctx, "deleting a team", func(tx pgx.Tx) error {
		if deleted.IngestKeys, err = s.Queries.IngestKeyDeleteByTeam(ctx, tx, teamID); err != nil {
			return err
		}
		return s.Queries.TeamDelete(ctx, tx, teamID)
	})
	return deleted, err
}

func (s *Store) deleteAPIKey(ctx context.Context, keyID string) error {
	if _, err := s.DeleteInParts(ctx, "deleting stored responses", func(tx pgx.Tx) (int64, error) {
		return s.Queries.IdempotencyKeyDelete(ctx, tx, db.IdempotencyKeyDeleteParams{KeyID: keyID, Most: deleteResponses})
	}); err != nil {
		return err
	}
	return s.InChange(ctx, "deleting an API key", func(tx pgx.Tx) error {
		return s.Queries.APIKeyDelete(ctx, tx, keyID)
	})
}
