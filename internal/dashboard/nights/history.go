package nights

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// queriesOf returns the queries of nights.
func queriesOf(v *page.Visit, nights []airquality.Night, athletes bool) []airquality.NightQuery {
	return airquality.NightQueries(nights, athletes, &v.Team.Limits, v.Now)
}

// readHistory reads nights, the newest first, of the people and places that have the rooms of a page.
func (p *Pages) readHistory(
	ctx context.Context, v *page.Visit, nights []airquality.Night, rooms []airquality.NightRoom,
) (map[airquality.Sleeper]*airquality.NightHistory, error) {
	wanted := make(map[airquality.Sleeper]bool, len(rooms))
	for i := range rooms {
		wanted[airquality.SleeperOf(&rooms[i].Assignment)] = true
	}
	all, results, _, err := p.backend.RoomNights(ctx, v.Team.ID, queriesOf(v, nights, false),
		func(a *roomsensor.Assignment) bool { return wanted[airquality.SleeperOf(a)] })
	if err != nil {
		return nil, err
	}
	found := airquality.GatherNights(all, results, len(nights))
	for s := range wanted {
		if found[s] == nil {
			found[s] = airquality.NewNightHistory(len(nights))
		}
	}
	return found, nil
}

// nightLink returns the address of the page of a device in a night.
func nightLink(v *page.Visit, device uuid.UUID, night *airquality.Night, person *uuid.UUID) string {
	address := v.Path("devices", device.String()) + "?from=" + roomsensor.FormatLocal(night.Window.From, v.Zone()) +
		"&to=" + roomsensor.FormatLocal(night.Window.To, v.Zone()) + "&night=" + night.Date.Format(time.DateOnly)
	if person != nil {
		address += "&person=" + person.String()
	}
	return address
}
