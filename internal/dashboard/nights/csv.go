package nights

import (
	"context"
	"time"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

// Download sends all rooms of a night as GET /nights.csv does, with the numbers of the page in all their digits.
func (p *Pages) Download(ctx context.Context, v *page.Visit) error {
	held, err := p.running.Try(fairshare.Owner{Team: v.Team.ID}, 1)
	if err != nil {
		return err
	}
	defer held.Release()
	r, err := p.readNight(ctx, v, v.Echo.QueryParam("night"))
	if err != nil {
		return err
	}
	if r.problem != "" {
		return roomsensor.Invalid("night", r.problem)
	}
	if r.more {
		return roomsensor.Invalid("", "The night has only the first rooms of this team. Read all of them with "+
			"GET /v1/nights.csv.")
	}
	body := csvenc.AppendNightHeader(nil)
	for i := range r.rooms {
		body = csvenc.AppendNight(body, r.night.Date, &r.rooms[i])
	}
	return v.SendFile("night_"+r.night.Date.Format(time.DateOnly)+".csv", "text/csv; charset=utf-8", body)
}
