package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
)

// createTeam creates the team with its keys, devices and assignments, unless an earlier run did so in this database.
func (d *demo) createTeam(ctx context.Context) error {
	if d.state != nil {
		_, err := d.store.Team(ctx, d.state.TeamID)
		if !errors.Is(err, roomsensor.ErrNotFound) {
			return err
		}
		d.printf("The team of the last run is not in this database: creating a new one.")
	}
	d.state = newState(d.began.UTC().Truncate(time.Minute))
	if err := d.fillTeam(ctx); err != nil {
		return fmt.Errorf("creating the team of the demo: %w", err)
	}
	d.created = true
	return d.dir.save(d.state)
}

// fillTeam creates the team of the state with the operator's use cases.
func (d *demo) fillTeam(ctx context.Context) error {
	team, err := d.operator.CreateTeam(ctx, demoTeam)
	if err != nil {
		return err
	}
	if d.state.TeamID, err = uuid.Parse(team.ID); err != nil {
		return fmt.Errorf("parsing the team id: %w", err)
	}
	if _, err := d.operator.UpdateTeamSettings(ctx, d.state.TeamID, setTeam); err != nil {
		return err
	}
	if err := d.createKeys(ctx); err != nil {
		return err
	}
	for i := range demoDevices {
		if err := d.createDevice(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// setTeam sets the time zone of the simulated rooms, in which people talk. By the other limits, only the bedroom whose
// window nobody opens is bad at night.
func setTeam(team *accounts.TeamSettings) {
	team.TimeZone, _ = timezone.Load("Europe/Berlin") // The binary contains it.
	team.Limits.Limits[roomsensor.Sound] = airquality.Limit{}
}

func (d *demo) createKeys(ctx context.Context) error {
	label := "demo"
	for scope, key := range map[roomsensor.Scope]*string{
		roomsensor.ScopeRead: &d.state.ReadKey, roomsensor.ScopeReadWrite: &d.state.ReadWriteKey,
	} {
		made, err := d.operator.CreateAPIKey(ctx, roomsensor.Key{TeamID: d.state.TeamID, Scope: scope, Label: &label})
		if err != nil {
			return err
		}
		*key = made.Key
	}
	made, err := d.operator.CreateIngestKey(ctx, roomsensor.Key{TeamID: d.state.TeamID, Label: &label})
	d.state.IngestKey = made.Key
	return err
}

func (d *demo) createDevice(ctx context.Context, i int) error {
	device := &demoDevices[i]
	made, err := d.operator.CreateDevice(ctx, roomsensor.NewDevice{
		TeamID: d.state.TeamID, HardwareID: d.state.fleet().HardwareID(i),
		DisplayName: optionalText(device.name), Metadata: device.metadata,
	})
	if err != nil {
		return err
	}
	id, err := uuid.Parse(made.DeviceID)
	if err != nil {
		return fmt.Errorf("parsing the device id: %w", err)
	}
	d.state.Devices = append(d.state.Devices, id)
	if device.replaced > 0 {
		at := d.state.MadeAt.Add(-device.replaced)
		if _, err := d.operator.ReplaceHardware(ctx, id, d.state.replacement(i), &at); err != nil {
			return err
		}
	}
	for n := range device.assignments {
		if err := d.createAssignment(ctx, id, &device.assignments[n]); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) createAssignment(ctx context.Context, device uuid.UUID, a *demoAssignment) error {
	started := d.daysAgo(a.started)
	plan, err := d.operator.StartAssignment(ctx, roomsensor.Assignment{
		DeviceID: device, Type: a.kind, Label: a.label, HomeOrTravel: a.where,
		ExternalRef: optionalText(a.ref),
	}, &started)
	if err != nil {
		return err
	}
	made, err := d.operator.ChangeAssignments(ctx, plan)
	if err != nil || a.ended == 0 {
		return err
	}
	id, err := uuid.Parse(made.After[0].AssignmentID)
	if err != nil {
		return fmt.Errorf("parsing the assignment id: %w", err)
	}
	ended := d.daysAgo(a.ended)
	if plan, err = d.operator.EndAssignment(ctx, id, &ended); err != nil {
		return err
	}
	_, err = d.operator.ChangeAssignments(ctx, plan)
	return err
}

// daysAgo returns a time so many days before the demo was created, rounded down to a full hour.
func (d *demo) daysAgo(days float64) time.Time {
	return d.state.MadeAt.Add(-time.Duration(days * float64(day))).Truncate(time.Hour)
}

func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
