package nights

import (
	"context"
	"strconv"
	"time"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// Download sends all rooms of a night as CSV, with the numbers of the page in all their digits.
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
	body := appendNightHeader(nil)
	for i := range r.rooms {
		body = appendNightRow(body, r.night.Date, &r.rooms[i])
	}
	return v.SendFile("night_"+r.night.Date.Format(time.DateOnly)+".csv", "text/csv; charset=utf-8", body)
}

func appendNightHeader(dst []byte) []byte {
	dst = append(dst, "night,from,to,assignment_id,label,type,home_or_travel,external_ref,device_id,"...)
	dst = append(dst, "display_name,verdict,expected,present,coverage"...)
	for _, m := range roomsensor.Metrics {
		for _, column := range []string{"min", "mean", "max", "count", "minutes_warn", "minutes_bad"} {
			dst = append(append(append(append(dst, ','), m.String()...), '_'), column...)
		}
	}
	return append(dst, '\n')
}

// appendNightRow appends the line of one room. Texts of people are guarded, because spreadsheets run formulas.
func appendNightRow(dst []byte, date time.Time, room *airquality.NightRoom) []byte {
	text := func(field string) { dst = csvenc.AppendField(append(dst, ','), csvenc.Guard(field)) }
	optional := func(field *string) {
		if field == nil {
			field = new(string)
		}
		text(*field)
	}
	count := func(n int) { dst = strconv.AppendInt(append(dst, ','), int64(n), 10) }
	number := func(x float32) { dst = roomsensor.AppendNumber(append(dst, ','), x) }

	a := &room.Assignment
	dst = append(dst, date.Format(time.DateOnly)...)
	dst = roomsensor.AppendTime(append(dst, ','), room.Window.From)
	dst = roomsensor.AppendTime(append(dst, ','), room.Window.To)
	text(a.ID.String())
	text(a.Label)
	text(string(a.Type))
	text(string(a.HomeOrTravel))
	optional(a.ExternalRef)
	text(a.DeviceID.String())
	optional(room.DeviceName)
	text(room.Verdict().String())
	count(room.Expected)
	count(room.Present)
	dst = append(dst, ',')
	if room.Expected > 0 {
		coverage := roomsensor.Coverage{Expected: room.Expected, Present: room.Present}
		dst = coverage.AppendRatio(dst)
	}
	const minutes = int(roomsensor.BucketLength / time.Minute)
	for i := range room.Metrics {
		m := &room.Metrics[i]
		if m.Count == 0 {
			dst = append(dst, ",,,"...)
		} else {
			number(m.Min)
			number(m.Mean)
			number(m.Max)
		}
		count(m.Count)
		count(minutes * (m.Low.Warn + m.High.Warn))
		count(minutes * (m.Low.Bad + m.High.Bad))
	}
	return append(dst, '\n')
}
