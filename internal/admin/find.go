package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

// parseID parses an id in its form of 36 characters (identifier rule, decision 7).
func parseID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == len(uuid.Nil.String())
}

// FindTeam returns the id of the team with an id or a name. An id is not looked up.
func (o *Operator) FindTeam(ctx context.Context, idOrName string) (uuid.UUID, error) {
	if id, ok := parseID(idOrName); ok {
		return id, nil
	}
	teams, err := o.store.TeamsNamed(ctx, idOrName)
	switch {
	case err != nil:
		return uuid.Nil, o.explain(ctx, err)
	case len(teams) == 0:
		return uuid.Nil, process.Refusef("There is no team with the name %q. roomsensor team list shows them.", idOrName)
	case len(teams) > 1:
		return uuid.Nil, process.Refusef("Several teams have the name %q: %s. Give the id of one of them.",
			idOrName, idsOf(teams))
	}
	return teams[0].ID, nil
}

// FindTeamIfNamed is FindTeam for an optional team: without an id or a name, it returns nil.
func (o *Operator) FindTeamIfNamed(ctx context.Context, idOrName *string) (*uuid.UUID, error) {
	if idOrName == nil {
		return nil, nil //nolint:nilnil // nil stands for any team.
	}
	id, err := o.FindTeam(ctx, *idOrName)
	return &id, err
}

func idsOf(teams []roomsensor.Team) string {
	ids := make([]string, len(teams))
	for i := range teams {
		ids[i] = teams[i].ID.String()
	}
	return strings.Join(ids, ", ")
}

// CheckTeamName refuses a name that another team than the given one has, because commands then find neither team by it.
// uuid.Nil stands for a new team.
func (o *Operator) CheckTeamName(ctx context.Context, name string, team uuid.UUID) error {
	teams, err := o.store.TeamsNamed(ctx, name)
	if err != nil {
		return o.explain(ctx, err)
	}
	teams = slices.DeleteFunc(teams, func(t roomsensor.Team) bool { return t.ID == team })
	if len(teams) == 0 {
		return nil
	}
	return process.Refusef("The name %q belongs to %s already, and commands would find neither team by it. "+
		"Choose another name, or accept that with --allow-same-name.", name, idsOf(teams))
}

// FindDevice returns the id of the device with an id or a name, or in which the unit with a hardware id is installed.
// team is the id or the name of its team, or nil if it may belong to any. Without a team, an id is not looked up.
func (o *Operator) FindDevice(ctx context.Context, team *string, device string) (uuid.UUID, error) {
	ofTeam, err := o.FindTeamIfNamed(ctx, team)
	if err != nil {
		return uuid.Nil, err
	}
	if id, ok := parseID(device); ok {
		return id, o.checkTeam(ctx, ofTeam, id)
	}
	if roomsensor.IsHardwareID(device) {
		id, err := o.store.DeviceOfUnit(ctx, ofTeam, device)
		if errors.Is(err, roomsensor.ErrNotFound) {
			err = process.Refusef("Unit %s is not installed in a device%s. Give the id or the name of the device.",
				device, ofThisTeam(ofTeam))
		}
		return id, o.explain(ctx, err)
	}
	return o.findDeviceByName(ctx, ofTeam, device)
}

// checkTeam refuses a device of another team than the given one.
func (o *Operator) checkTeam(ctx context.Context, team *uuid.UUID, deviceID uuid.UUID) error {
	if team == nil {
		return nil
	}
	device, err := o.store.OwnedDevice(ctx, deviceID)
	if err == nil && device.TeamID != *team {
		err = &roomsensor.NotFoundError{Kind: roomsensor.KindDevice, ID: deviceID.String()}
	}
	return o.explain(ctx, err)
}

func (o *Operator) findDeviceByName(ctx context.Context, team *uuid.UUID, name string) (uuid.UUID, error) {
	devices, err := o.store.DevicesNamed(ctx, team, name)
	switch {
	case err != nil:
		return uuid.Nil, o.explain(ctx, err)
	case len(devices) == 0:
		return uuid.Nil, process.Refusef("There is no device%s with the name %q. "+
			"roomsensor device list --team TEAM shows a team's devices.", ofThisTeam(team), name)
	case len(devices) > 1:
		var candidates []string
		for i := range devices {
			d := &devices[i]
			candidates = append(candidates, fmt.Sprintf("%s (unit %s, team %s)", d.ID, d.HardwareID, d.TeamID))
		}
		return uuid.Nil, process.Refusef("Several devices%s have the name %q: %s. Give the id of one of them.",
			ofThisTeam(team), name, strings.Join(candidates, ", "))
	}
	return devices[0].ID, nil
}

func ofThisTeam(team *uuid.UUID) string {
	if team == nil {
		return ""
	}
	return " of this team"
}
