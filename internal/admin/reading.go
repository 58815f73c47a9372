package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/admin/archive"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/fleet"
)

// DeletedReadings is a device with the numbers of its readings and samples in a window of buckets.
type DeletedReadings struct {
	DeviceID    string  `json:"device_id"`
	TeamID      string  `json:"team_id"`
	HardwareID  string  `json:"hardware_id"`
	DisplayName *string `json:"display_name"`
	From        string  `json:"from"`
	To          string  `json:"to"`
	Readings    int64   `json:"readings"`
	Samples     int64   `json:"samples"`
}

func viewDeletedReadings(d *fleet.OwnedDevice, w roomsensor.Window, r *roomsensor.ReadingRange) DeletedReadings {
	return DeletedReadings{
		d.ID.String(), d.TeamID.String(), d.HardwareID, d.DisplayName,
		roomsensor.FormatTime(w.From), roomsensor.FormatTime(w.To), r.Readings, r.Samples,
	}
}

// ReadingsPreview is what DeleteReadings deletes, and what changes with that.
type ReadingsPreview struct {
	DeletedReadings

	FirstBucketAt *string       `json:"first_bucket_at"`
	LastBucketAt  *string       `json:"last_bucket_at"`
	Assignments   []Assignment  `json:"assignments"`
	Changes       []PreviewLine `json:"changes"`
}

// BucketsBetween returns the window of the buckets that begin at or after a time and before another one.
func BucketsBetween(from, to time.Time) roomsensor.Window {
	const last = roomsensor.BucketLength - 1
	return roomsensor.Window{From: roomsensor.BucketOf(from.Add(last)), To: roomsensor.BucketOf(to.Add(last))}
}

// PreviewReadings counts what DeleteReadings deletes. It reads the index of these readings.
func (o *Operator) PreviewReadings(
	ctx context.Context, deviceID uuid.UUID, window roomsensor.Window,
) (ReadingsPreview, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err != nil {
		return ReadingsPreview{}, o.explain(ctx, err)
	}
	counted, err := o.store.CountReadings(ctx, deviceID, window)
	if err != nil {
		return ReadingsPreview{}, o.explain(ctx, err)
	}
	assignments, err := o.store.DeviceAssignments(ctx, deviceID)
	if err != nil {
		return ReadingsPreview{}, o.explain(ctx, err)
	}
	team, err := o.store.TeamSettings(ctx, device.TeamID)
	if err != nil {
		return ReadingsPreview{}, o.explain(ctx, err)
	}
	return viewReadingsPreview(&device, window, &counted, assignments, &team), nil
}

func viewReadingsPreview(
	device *fleet.OwnedDevice, window roomsensor.Window, counted *roomsensor.ReadingRange,
	assignments []roomsensor.Assignment, team *accounts.TeamSettings,
) ReadingsPreview {
	p := ReadingsPreview{
		DeletedReadings: viewDeletedReadings(device, window, counted), Assignments: []Assignment{}, Changes: []PreviewLine{},
	}
	if counted.Readings == 0 {
		return p
	}
	p.FirstBucketAt, p.LastBucketAt = formatTime(&counted.First), formatTime(&counted.Last)
	measured := roomsensor.Window{From: counted.First, To: counted.Last.Add(roomsensor.BucketLength)}
	p.Changes = append(p.Changes, PreviewLine{fmt.Sprintf("Aggregates and coverage from %s to %s (UTC).",
		counted.First.Format(time.DateOnly), counted.Last.Format(time.DateOnly))})
	if counted.Newest {
		p.Changes = append(p.Changes, PreviewLine{"The newest reading of the device becomes an earlier one, or none."})
	}
	for i := range assignments {
		a := &assignments[i]
		held := a.Window().Intersect(measured)
		if held.Empty() {
			continue
		}
		p.Assignments = append(p.Assignments, viewAssignment(a))
		if first, nights := nightsIn(held, team); nights > 0 {
			p.Changes = append(p.Changes, PreviewLine{fmt.Sprintf("Nights of %s: %d, the first on %s.",
				a.Label, nights, first.Format(time.DateOnly))})
		}
	}
	return p
}

// nightsIn counts the nights of a team that overlap a window, and returns the date of the first one.
func nightsIn(window roomsensor.Window, team *accounts.TeamSettings) (first time.Time, nights int) {
	night := team.Night.Last(window.To, team.TimeZone)
	for night.Window.To.After(window.From) {
		if night.Window.From.Before(window.To) {
			first, nights = night.Date, nights+1
		}
		night = team.Night.Night(night.Date.AddDate(0, 0, -1), team.TimeZone)
	}
	return first, nights
}

// DeleteReadings deletes the readings of a device in a window of buckets, and returns the numbers. It can be run again
// after a failure.
func (o *Operator) DeleteReadings(
	ctx context.Context, deviceID uuid.UUID, window roomsensor.Window, reason string,
) (DeletedReadings, error) {
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err != nil {
		return DeletedReadings{}, o.explain(ctx, err)
	}
	deleted, err := o.store.DeleteReadings(ctx, deviceID, window, reason)
	return viewDeletedReadings(&device, window, &deleted), o.explain(ctx, err)
}

// Archive writes the months of a team, or of all teams, that ended an age ago. options has the rest.
func (o *Operator) Archive(
	ctx context.Context, files archive.Files, team *string, age time.Duration, options archive.Options,
) (archive.Result, error) {
	if team != nil {
		id, err := o.FindTeam(ctx, *team)
		if err != nil {
			return archive.Result{}, err
		}
		options.Teams = []uuid.UUID{id}
	} else {
		teams, err := o.store.Teams(ctx)
		if err != nil {
			return archive.Result{}, o.explain(ctx, err)
		}
		for i := range teams {
			options.Teams = append(options.Teams, teams[i].ID)
		}
	}
	options.Until = o.now().Add(-age)
	result, err := archive.Write(ctx, o.store, files, options)
	return result, o.explain(ctx, err)
}
