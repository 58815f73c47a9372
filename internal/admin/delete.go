package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
)

// DeviceContents is a device and the numbers of rows that belong to it.
type DeviceContents struct {
	DeviceID      string  `json:"device_id"`
	TeamID        string  `json:"team_id"`
	HardwareID    string  `json:"hardware_id"`
	DisplayName   *string `json:"display_name"`
	Readings      int64   `json:"readings"`
	Assignments   int64   `json:"assignments"`
	Installations int64   `json:"installations"`
}

func viewDeviceContents(d *fleet.OwnedDevice, c fleet.DeviceContents) DeviceContents {
	return DeviceContents{
		d.ID.String(), d.TeamID.String(), d.HardwareID, d.DisplayName, c.Readings, c.Assignments, c.Installations,
	}
}

// TeamContents is a team and the numbers of rows that belong to it.
type TeamContents struct {
	ID            string  `json:"id"`
	Name          *string `json:"name"` // null for a team that was deleted before
	Devices       int64   `json:"devices"`
	Readings      int64   `json:"readings"`
	Assignments   int64   `json:"assignments"`
	Installations int64   `json:"installations"`
	APIKeys       int64   `json:"api_keys"`
	IngestKeys    int64   `json:"ingest_keys"`
	Rejects       int64   `json:"rejects"`
}

func viewTeamContents(id uuid.UUID, name *string, c *fleet.TeamContents) TeamContents {
	return TeamContents{
		id.String(), name, c.Devices, c.Readings, c.Assignments, c.Installations, c.APIKeys, c.IngestKeys, c.Rejects,
	}
}

// DeviceContents counts what DeleteDevice deletes.
func (o *Operator) DeviceContents(ctx context.Context, deviceID uuid.UUID) (DeviceContents, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err != nil {
		return DeviceContents{}, o.explain(ctx, err)
	}
	contents, err := o.store.DeviceContents(ctx, deviceID)
	return viewDeviceContents(&device, contents), o.explain(ctx, err)
}

// DeleteDevice deletes a device and what belongs to it, and returns the numbers. It can be run again after a failure.
func (o *Operator) DeleteDevice(ctx context.Context, deviceID uuid.UUID) (DeviceContents, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err != nil {
		return DeviceContents{}, o.explain(ctx, err)
	}
	deleted, err := o.store.DeleteDevice(ctx, deviceID)
	return viewDeviceContents(&device, deleted), o.explain(ctx, err)
}

// TeamContents counts what DeleteTeam deletes. A team that was deleted before may have rejects: workers create them
// from uploads that were in the stream at that time.
func (o *Operator) TeamContents(ctx context.Context, teamID uuid.UUID) (TeamContents, error) {
	name, missing := o.teamName(ctx, teamID)
	if missing != nil && !errors.Is(missing, roomsensor.ErrNotFound) {
		return TeamContents{}, o.explain(ctx, missing)
	}
	contents, err := o.store.TeamContents(ctx, teamID)
	if err == nil && contents.Rejects == 0 {
		err = missing
	}
	return viewTeamContents(teamID, name, &contents), o.explain(ctx, err)
}

// teamName returns the name of a team, or nil with an error.
func (o *Operator) teamName(ctx context.Context, teamID uuid.UUID) (*string, error) {
	team, err := o.store.Team(ctx, teamID)
	if err != nil {
		return nil, err
	}
	return &team.Name, nil
}

// DeleteTeam revokes the keys of a team, deletes its devices and all that belongs to it, and returns the numbers. It
// reports each deleted device to progress. It can be run again after a failure.
func (o *Operator) DeleteTeam(ctx context.Context, teamID uuid.UUID, progress io.Writer) (TeamContents, error) {
	name, err := o.teamName(ctx, teamID)
	if err != nil && !errors.Is(err, roomsensor.ErrNotFound) {
		return TeamContents{}, o.explain(ctx, err)
	}
	wait, err := o.store.RevokeTeam(ctx, teamID)
	if err != nil {
		return TeamContents{}, o.explain(ctx, err)
	}
	refused := time.Now().Add(wait)
	deleted, err := o.deleteDevices(ctx, teamID, progress)
	if err != nil {
		return TeamContents{}, o.explain(ctx, err)
	}
	if err := retry.Sleep(ctx, time.Until(refused)); err != nil {
		return TeamContents{}, process.ErrInterrupted
	}
	rest, err := o.store.DeleteTeam(ctx, teamID)
	rest.DeviceContents, rest.Devices = deleted.DeviceContents, deleted.Devices
	return viewTeamContents(teamID, name, &rest), o.explain(ctx, err)
}

func (o *Operator) deleteDevices(
	ctx context.Context, teamID uuid.UUID, progress io.Writer,
) (deleted fleet.TeamContents, err error) {
	devices, err := o.store.DeviceNames(ctx, teamID)
	if err != nil {
		return deleted, err
	}
	for i := range devices {
		one, err := o.store.DeleteDevice(ctx, devices[i].ID)
		if err != nil {
			return deleted, err
		}
		deleted.AddContents(one)
		deleted.Devices++
		_, _ = fmt.Fprintf(progress, "Deleted device %s with %d readings (%d of %d).\n",
			devices[i].ID, one.Readings, i+1, len(devices))
	}
	return deleted, nil
}
