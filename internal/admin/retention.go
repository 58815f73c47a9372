package admin

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// RetentionPreview is what a retention deletes now. KeepDays and DeletedBefore are null without a retention.
type RetentionPreview struct {
	TeamID        string  `json:"team_id"`
	KeepDays      *int32  `json:"keep_days"`
	DeletedBefore *string `json:"deleted_before"` // readings whose bucket begins before it
	Devices       int     `json:"devices"`        // that have such readings
	Readings      int64   `json:"readings"`
	Samples       int64   `json:"samples"`
}

// PreviewTeamRetention counts the readings that a retention of a team deletes now: those of its devices without one of
// their own.
func (o *Operator) PreviewTeamRetention(ctx context.Context, teamID uuid.UUID, days *int32) (RetentionPreview, error) {
	devices, err := o.store.DeviceNames(ctx, teamID)
	if err != nil {
		return RetentionPreview{}, o.explain(ctx, err)
	}
	own, err := o.store.Retentions(ctx, teamID)
	if err != nil {
		return RetentionPreview{}, o.explain(ctx, err)
	}
	ids := make([]uuid.UUID, 0, len(devices))
	for i := range devices {
		if _, found := own[devices[i].ID]; !found {
			ids = append(ids, devices[i].ID)
		}
	}
	return o.previewRetention(ctx, teamID, days, ids)
}

// PreviewRetention counts the readings that a retention of a device deletes now; nil is that of the team.
func (o *Operator) PreviewRetention(ctx context.Context, deviceID uuid.UUID, days *int32) (RetentionPreview, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil && days == nil {
		team, failed := o.store.TeamSettings(ctx, device.TeamID)
		days, err = team.KeepDays, failed
	}
	if err != nil {
		return RetentionPreview{}, o.explain(ctx, err)
	}
	return o.previewRetention(ctx, device.TeamID, days, []uuid.UUID{deviceID})
}

func (o *Operator) previewRetention(
	ctx context.Context, teamID uuid.UUID, days *int32, devices []uuid.UUID,
) (RetentionPreview, error) {
	p := RetentionPreview{TeamID: teamID.String(), KeepDays: days}
	if days == nil {
		return p, nil
	}
	before := o.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -int(*days))
	p.DeletedBefore = new(roomsensor.FormatTime(before))
	for _, id := range devices {
		counted, err := o.store.CountReadings(ctx, id, roomsensor.Window{To: before})
		if err != nil {
			return p, o.explain(ctx, err)
		}
		if counted.Readings > 0 {
			p.Devices++
		}
		p.Readings, p.Samples = p.Readings+counted.Readings, p.Samples+counted.Samples
	}
	return p, nil
}

// SetTeamRetention changes for how many days the readings of a team are kept; nil: without end.
func (o *Operator) SetTeamRetention(ctx context.Context, teamID uuid.UUID, days *int32) (TeamSettings, error) {
	if err := o.store.SetTeamRetention(ctx, teamID, days); err != nil {
		return TeamSettings{}, o.explain(ctx, err)
	}
	return o.TeamSettings(ctx, teamID)
}

// SetRetention changes for how many days the readings of a device are kept; nil: as the team's.
func (o *Operator) SetRetention(ctx context.Context, deviceID uuid.UUID, days *int32) (Device, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil {
		err = o.store.SetRetention(ctx, device.TeamID, deviceID, days)
	}
	return o.device(ctx, &device, err)
}
