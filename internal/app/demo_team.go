package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// makeTeam makes the team with its keys, devices and assignments, unless an
// earlier run did in this very database.
func (d *demo) makeTeam(ctx context.Context, _ *lifecycle) error {
	if d.state != nil {
		_, err := d.operator.store.Team(ctx, d.state.TeamID)
		if !errors.Is(err, roomsensor.ErrNotFound) {
			return err
		}
		d.say("The database does not know the team of the last run: making another one.")
	}
	now := d.began.UTC().Truncate(time.Minute)
	maker := demoMaker{operator: d.operator, now: now, state: newDemoState(now)}
	if err := maker.make(ctx); err != nil {
		return fmt.Errorf("making the demo's team: %w", err)
	}
	d.state = maker.state
	return d.dir.save(d.state)
}

// demoMaker makes the cast with the operator's commands.
type demoMaker struct {
	operator *Operator
	now      time.Time
	state    *demoState
}

func (m *demoMaker) make(ctx context.Context) error {
	team, err := m.operator.CreateTeam(ctx, demoTeam)
	if err != nil {
		return err
	}
	if m.state.TeamID, err = uuid.Parse(team.ID); err != nil {
		return fmt.Errorf("reading the team's id: %w", err)
	}
	if err := m.keys(ctx); err != nil {
		return err
	}
	for i := range demoCast {
		if err := m.device(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (m *demoMaker) keys(ctx context.Context) error {
	label := "demo"
	for scope, key := range map[roomsensor.Scope]*string{
		roomsensor.ScopeRead: &m.state.ReadKey, roomsensor.ScopeReadWrite: &m.state.ReadWriteKey,
	} {
		made, err := m.operator.CreateAPIKey(ctx, KeyOptions{TeamID: m.state.TeamID, Scope: scope, Label: &label})
		if err != nil {
			return err
		}
		*key = made.Key
	}
	made, err := m.operator.CreateIngestKey(ctx, m.state.TeamID, &label)
	m.state.IngestKey = made.Key
	return err
}

func (m *demoMaker) device(ctx context.Context, i int) error {
	cast := &demoCast[i]
	made, err := m.operator.CreateDevice(ctx, DeviceOptions{
		TeamID: m.state.TeamID, HardwareID: m.state.fleet().HardwareID(i),
		DisplayName: optionalText(cast.name), Metadata: cast.metadata,
	})
	if err != nil {
		return err
	}
	id, err := uuid.Parse(made.DeviceID)
	if err != nil {
		return fmt.Errorf("reading the device's id: %w", err)
	}
	m.state.Devices = append(m.state.Devices, id)
	if cast.swapped > 0 {
		at := m.now.Add(-cast.swapped)
		if _, err := m.operator.ReplaceHardware(ctx, id, m.state.replacement(i), &at); err != nil {
			return err
		}
	}
	for n := range cast.blocks {
		if err := m.assignment(ctx, id, &cast.blocks[n]); err != nil {
			return err
		}
	}
	return nil
}

func (m *demoMaker) assignment(ctx context.Context, device uuid.UUID, b *demoBlock) error {
	started := m.daysAgo(b.started)
	made, err := m.operator.StartAssignment(ctx, AssignmentOptions{
		DeviceID: device, Type: b.kind, Label: b.label, HomeOrTravel: b.where,
		ExternalRef: optionalText(b.ref), At: &started,
	})
	if err != nil || b.ended == 0 {
		return err
	}
	id, err := uuid.Parse(made.AssignmentID)
	if err != nil {
		return fmt.Errorf("reading the assignment's id: %w", err)
	}
	ended := m.daysAgo(b.ended)
	_, err = m.operator.EndAssignment(ctx, id, &ended)
	return err
}

// daysAgo is a whole hour: blocks begin and end when somebody is there.
func (m *demoMaker) daysAgo(days float64) time.Time {
	return m.now.Add(-time.Duration(days * float64(demoDay))).Truncate(time.Hour)
}

func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
