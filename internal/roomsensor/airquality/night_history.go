package airquality

import (
	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Sleeper is what a history follows: a person from room to room, or a device that measures a place.
type Sleeper struct {
	Person roomsensor.PersonKey
	Device uuid.UUID
}

// SleeperOf returns the sleeper whom an assignment names.
func SleeperOf(a *roomsensor.Assignment) Sleeper {
	if key, ok := a.Person(); ok {
		return Sleeper{Person: key}
	}
	return Sleeper{Device: a.DeviceID}
}

// NightHistory has the nights of a sleeper.
type NightHistory struct {
	Nights []NightResult // one per night; empty if the sleeper was nowhere
	Rooms  [][]NightRoom // in which the sleeper was, each with its part of the night
	Stays  []NightRoom   // all rooms of the nights, with their assignments, without results
}

// NewNightHistory returns the history of a sleeper who was nowhere.
func NewNightHistory(nights int) *NightHistory {
	return &NightHistory{Nights: make([]NightResult, nights), Rooms: make([][]NightRoom, nights)}
}

// GatherNights adds up the nights of each sleeper.
func GatherNights(rooms []NightRoom, results [][]NightResult, nights int) map[Sleeper]*NightHistory {
	found := map[Sleeper]*NightHistory{}
	for i := range rooms {
		key := SleeperOf(&rooms[i].Assignment)
		h := found[key]
		if h == nil {
			h = NewNightHistory(nights)
			found[key] = h
		}
		h.Stays = append(h.Stays, rooms[i])
		for n := range results[i] {
			if r := &results[i][n]; !r.Window.Empty() {
				h.Nights[n].Add(r)
				room := rooms[i]
				room.NightResult = *r
				h.Rooms[n] = append(h.Rooms[n], room)
			}
		}
	}
	return found
}

// Worst returns the room that was worst in a night; nil without one.
func (h *NightHistory) Worst(night int) (worst *NightRoom) {
	for i := range h.Rooms[night] {
		if room := &h.Rooms[night][i]; worst == nil || room.Compare(worst) < 0 {
			worst = room
		}
	}
	return worst
}

// Newest returns the room of the newest assignment.
func (h *NightHistory) Newest() *NightRoom {
	newest := &h.Stays[0]
	for i := range h.Stays {
		if h.Stays[i].Assignment.StartedAt.After(newest.Assignment.StartedAt) {
			newest = &h.Stays[i]
		}
	}
	return newest
}
