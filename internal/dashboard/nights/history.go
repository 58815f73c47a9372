package nights

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// sleeper is what a history follows: a person from room to room, or a device that measures a place.
type sleeper struct {
	person roomsensor.PersonKey
	device uuid.UUID
}

func sleeperOf(a *roomsensor.Assignment) sleeper {
	if key, ok := a.Person(); ok {
		return sleeper{person: key}
	}
	return sleeper{device: a.DeviceID}
}

// history has the nights of a sleeper.
type history struct {
	nights []roomsensor.NightResult // one per night; empty if the sleeper was nowhere
	rooms  [][]roomsensor.NightRoom // in which the sleeper was, each with its part of the night
	stays  []roomsensor.NightRoom   // all rooms of the nights, with their assignments, without results
}

// queriesOf returns the queries of nights.
func queriesOf(v *page.Visit, nights []roomsensor.Night, athletes bool) []roomsensor.NightQuery {
	queries := make([]roomsensor.NightQuery, len(nights))
	for i := range nights {
		queries[i] = roomsensor.NightQuery{
			Window: nights[i].Window, Athletes: athletes, Limits: &v.Team.Limits, Now: v.Now,
		}
	}
	return queries
}

// readHistory reads nights, the newest first, of the people and places that have the rooms of a page.
func (p *Pages) readHistory(
	ctx context.Context, v *page.Visit, nights []roomsensor.Night, rooms []roomsensor.NightRoom,
) (map[sleeper]*history, error) {
	wanted := make(map[sleeper]bool, len(rooms))
	for i := range rooms {
		wanted[sleeperOf(&rooms[i].Assignment)] = true
	}
	all, results, _, err := p.backend.RoomNights(ctx, v.Team.ID, queriesOf(v, nights, false),
		func(a *roomsensor.Assignment) bool { return wanted[sleeperOf(a)] })
	if err != nil {
		return nil, err
	}
	found := gather(all, results, len(nights))
	for s := range wanted {
		if found[s] == nil {
			found[s] = newHistory(len(nights))
		}
	}
	return found, nil
}

func newHistory(nights int) *history {
	return &history{nights: make([]roomsensor.NightResult, nights), rooms: make([][]roomsensor.NightRoom, nights)}
}

// gather adds up the nights of each sleeper.
func gather(rooms []roomsensor.NightRoom, results [][]roomsensor.NightResult, nights int) map[sleeper]*history {
	found := map[sleeper]*history{}
	for i := range rooms {
		key := sleeperOf(&rooms[i].Assignment)
		h := found[key]
		if h == nil {
			h = newHistory(nights)
			found[key] = h
		}
		h.stays = append(h.stays, rooms[i])
		for n := range results[i] {
			if r := &results[i][n]; !r.Window.Empty() {
				h.nights[n].Add(r)
				room := rooms[i]
				room.NightResult = *r
				h.rooms[n] = append(h.rooms[n], room)
			}
		}
	}
	return found
}

// worst returns the room that was worst in a night; nil without one.
func (h *history) worst(night int) (worst *roomsensor.NightRoom) {
	for i := range h.rooms[night] {
		if room := &h.rooms[night][i]; worst == nil || room.Compare(worst) < 0 {
			worst = room
		}
	}
	return worst
}

// newest returns the room of the newest assignment.
func (h *history) newest() *roomsensor.NightRoom {
	newest := &h.stays[0]
	for i := range h.stays {
		if h.stays[i].Assignment.StartedAt.After(newest.Assignment.StartedAt) {
			newest = &h.stays[i]
		}
	}
	return newest
}

// nightLink returns the address of the page of a device in a night.
func nightLink(v *page.Visit, device uuid.UUID, night *roomsensor.Night, person *uuid.UUID) string {
	address := v.Path("devices", device.String()) + "?from=" + roomsensor.FormatLocal(night.Window.From, v.Zone()) +
		"&to=" + roomsensor.FormatLocal(night.Window.To, v.Zone()) + "&night=" + night.Date.Format(time.DateOnly)
	if person != nil {
		address += "&person=" + person.String()
	}
	return address
}
