package assignments

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// choice is a field with values that people can choose.
type choice struct {
	Name, Label, Value, Error string
	Options                   []option
}

type option struct{ Value, Text string }

// addChoices adds the people who are in a room, and the rooms of the team.
func (p *Pages) addChoices(ctx context.Context, v *page.Visit, f *form) error {
	open, err := p.backend.OpenAthletes(ctx, v.Team.ID, maxChoices)
	if err != nil {
		return err
	}
	devices, err := p.backend.DeviceNames(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	var people, rooms []option
	inRoom := map[uuid.UUID]string{}
	for i := range open {
		a := &open[i]
		people = append(people, option{a.ID.String(), a.Label + ", " + wording.TextOr(a.DisplayName, a.HardwareID)})
		inRoom[a.DeviceID] = ", " + a.Label
	}
	for i := range devices {
		if devices[i].Retired {
			continue
		}
		id := devices[i].ID
		name := wording.TextOr(devices[i].DisplayName, "unnamed, "+id.String())
		rooms = append(rooms, option{id.String(), name + inRoom[id]})
	}
	wording.SortNames(rooms, func(o *option) string { return o.Text })
	f.Choices = []choice{
		{"who", "Who", f.Values["who"], f.Errors["who"], people},
		{"to", "New room", f.Values["to"], f.Errors["to"], rooms[:min(len(rooms), maxChoices)]},
	}
	return nil
}

// readMove returns the move that the fields ask for, and adds their errors.
func (p *Pages) readMove(ctx context.Context, v *page.Visit, f *form) (*plan, error) {
	move := roomsensor.Move{At: v.EffectiveTime(f.Values["at"], f.Errors), Swap: f.Values["if_occupied"] != "end"}
	from, to, err := p.readRooms(ctx, v, f, &move)
	if err != nil || len(f.Errors) > 0 {
		return nil, err
	}
	oldRoom, newRoom := wording.TextOr(from.DisplayName, from.HardwareID), wording.TextOr(to.DisplayName, to.HardwareID)
	who := move.From.Label
	made := &plan{message: "Moved " + who + " from " + oldRoom + " to " + newRoom + since(v, f) + "."}
	made.lines = []string{who + " moves from " + oldRoom + " to " + newRoom + " at " + clock(v, move.At) + "."}
	afterwards := oldRoom + " then has no assignment."
	if f.Values["old_room"] != "" {
		move.OldRoom = oldRoom
		afterwards = oldRoom + " is a place from then on."
	}
	if to.ActiveAssignment != nil {
		occupant, err := p.backend.Assignment(ctx, v.Team.ID, to.ActiveAssignment.ID)
		if err != nil {
			return nil, err
		}
		move.Occupant, move.Swap = &occupant, move.Swap && occupant.Type == roomsensor.Athlete
		made.named = []string{occupant.ID.String()}
		end := newRoom + " has the open assignment “" + occupant.Label + "” " + period(v, &occupant) + ". "
		if move.Swap {
			afterwards = end + occupant.Label + " moves to " + oldRoom + " at the same time."
		} else {
			made.lines = append(made.lines, end+"It ends.")
		}
	}
	made.lines = append(made.lines, afterwards)
	made.change = move.Change()
	return made, p.addElsewhere(ctx, v, f, made)
}

// readRooms reads who moves, and to which room.
func (p *Pages) readRooms(
	ctx context.Context, v *page.Visit, f *form, move *roomsensor.Move,
) (from, to roomsensor.Device, err error) {
	who, err := uuid.Parse(f.Values["who"])
	if err == nil {
		move.From, err = p.backend.Assignment(ctx, v.Team.ID, who)
	}
	if err != nil || move.From.Type != roomsensor.Athlete {
		return from, to, f.refuse("who", "Choose the person who moves.", err)
	}
	f.Current = &move.From
	if move.To, err = uuid.Parse(f.Values["to"]); err == nil {
		to, err = p.backend.Device(ctx, v.Team.ID, move.To)
	}
	switch {
	case err != nil:
		return from, to, f.refuse("to", "Choose the new room.", err)
	case move.To == move.From.DeviceID:
		f.Errors.Add("to", move.From.Label+" is in this room already. Choose another one.")
		return from, to, nil
	}
	from, err = p.backend.Device(ctx, v.Team.ID, move.From.DeviceID)
	return from, to, err
}

// refuse adds the error of a field, unless the service failed.
func (f *form) refuse(field, sentence string, err error) error {
	if failure, ok := errors.AsType[*roomsensor.Error](err); ok {
		return failure
	}
	f.Errors.Add(field, sentence)
	return nil
}
