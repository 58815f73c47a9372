package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
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
	now := d.began.UTC().Truncate(time.Minute)
	creator := teamCreator{operator: d.operator, now: now, state: newState(now)}
	if err := creator.create(ctx); err != nil {
		return fmt.Errorf("creating the team of the demo: %w", err)
	}
	d.state, d.created = creator.state, true
	return d.dir.save(d.state)
}

// teamCreator creates the team with the operator's use cases.
type teamCreator struct {
	operator *admin.Operator
	now      time.Time
	state    *state
}

func (c *teamCreator) create(ctx context.Context) error {
	team, err := c.operator.CreateTeam(ctx, demoTeam)
	if err != nil {
		return err
	}
	if c.state.TeamID, err = uuid.Parse(team.ID); err != nil {
		return fmt.Errorf("parsing the team id: %w", err)
	}
	if _, err := c.operator.UpdateTeamSettings(ctx, c.state.TeamID, setTeam); err != nil {
		return err
	}
	if err := c.createKeys(ctx); err != nil {
		return err
	}
	for i := range demoDevices {
		if err := c.createDevice(ctx, i); err != nil {
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

func (c *teamCreator) createKeys(ctx context.Context) error {
	label := "demo"
	for scope, key := range map[roomsensor.Scope]*string{
		roomsensor.ScopeRead: &c.state.ReadKey, roomsensor.ScopeReadWrite: &c.state.ReadWriteKey,
	} {
		made, err := c.operator.CreateAPIKey(ctx, roomsensor.Key{TeamID: c.state.TeamID, Scope: scope, Label: &label})
		if err != nil {
			return err
		}
		*key = made.Key
	}
	made, err := c.operator.CreateIngestKey(ctx, roomsensor.Key{TeamID: c.state.TeamID, Label: &label})
	c.state.IngestKey = made.Key
	return err
}

func (c *teamCreator) createDevice(ctx context.Context, i int) error {
	device := &demoDevices[i]
	made, err := c.operator.CreateDevice(ctx, roomsensor.NewDevice{
		TeamID: c.state.TeamID, HardwareID: c.state.fleet().HardwareID(i),
		DisplayName: optionalText(device.name), Metadata: device.metadata,
	})
	if err != nil {
		return err
	}
	id, err := uuid.Parse(made.DeviceID)
	if err != nil {
		return fmt.Errorf("parsing the device id: %w", err)
	}
	c.state.Devices = append(c.state.Devices, id)
	if device.replaced > 0 {
		at := c.now.Add(-device.replaced)
		if _, err := c.operator.ReplaceHardware(ctx, id, c.state.replacement(i), &at); err != nil {
			return err
		}
	}
	for n := range device.assignments {
		if err := c.createAssignment(ctx, id, &device.assignments[n]); err != nil {
			return err
		}
	}
	return nil
}

func (c *teamCreator) createAssignment(ctx context.Context, device uuid.UUID, a *demoAssignment) error {
	started := c.daysAgo(a.started)
	plan, err := c.operator.StartAssignment(ctx, roomsensor.Assignment{
		DeviceID: device, Type: a.kind, Label: a.label, HomeOrTravel: a.where,
		ExternalRef: optionalText(a.ref),
	}, &started)
	if err != nil {
		return err
	}
	made, err := c.operator.ChangeAssignments(ctx, plan)
	if err != nil || a.ended == 0 {
		return err
	}
	id, err := uuid.Parse(made.After[0].AssignmentID)
	if err != nil {
		return fmt.Errorf("parsing the assignment id: %w", err)
	}
	ended := c.daysAgo(a.ended)
	if plan, err = c.operator.EndAssignment(ctx, id, &ended); err != nil {
		return err
	}
	_, err = c.operator.ChangeAssignments(ctx, plan)
	return err
}

// daysAgo returns a time so many days before the demo was created, rounded down to a full hour.
func (c *teamCreator) daysAgo(days float64) time.Time {
	return c.now.Add(-time.Duration(days * float64(day))).Truncate(time.Hour)
}

func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
