package csvenc

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// AppendNightHeader appends the header row of a CSV of nights (A17.3).
func AppendNightHeader(dst []byte) []byte {
	dst = append(dst, "night,from,to,assignment_id,type,label,external_ref,device_id,display_name,"...)
	dst = append(dst, "verdict,expected,present,coverage"...)
	for _, m := range roomsensor.Metrics {
		for _, column := range []string{"_min", "_mean", "_max", "_minutes_warn", "_minutes_bad"} {
			dst = append(append(append(dst, ','), m.String()...), column...)
		}
	}
	return append(dst, '\n')
}

// AppendNight appends the line of an assignment in the night that begins on a date. Texts of people are guarded.
func AppendNight(dst []byte, date time.Time, room *airquality.NightRoom) []byte {
	a := &room.Assignment
	dst = date.AppendFormat(dst, time.DateOnly)
	dst = roomsensor.AppendTime(append(dst, ','), room.Window.From)
	dst = roomsensor.AppendTime(append(dst, ','), room.Window.To)
	dst = append(append(dst, ','), a.ID.String()...)
	dst = append(append(dst, ','), a.Type...)
	dst = plain.appendText(dst, &a.Label)
	dst = plain.appendText(dst, a.ExternalRef)
	dst = append(append(dst, ','), a.DeviceID.String()...)
	dst = plain.appendText(dst, room.DeviceName)
	dst = append(append(dst, ','), room.Verdict().String()...)
	dst = strconv.AppendInt(append(dst, ','), int64(room.Expected), 10)
	dst = strconv.AppendInt(append(dst, ','), int64(room.Present), 10)
	if dst = append(dst, ','); room.Expected > 0 {
		dst = room.AppendCoverage(dst)
	}
	for i := range room.Metrics {
		m := &room.Metrics[i]
		if m.Count == 0 {
			dst = append(dst, ",,,"...)
		} else {
			dst = roomsensor.AppendNumber(append(dst, ','), m.Min)
			dst = roomsensor.AppendNumber(append(dst, ','), m.Mean)
			dst = roomsensor.AppendNumber(append(dst, ','), m.Max)
		}
		dst = strconv.AppendInt(append(dst, ','), int64(m.Minutes(airquality.Stuffy)), 10)
		dst = strconv.AppendInt(append(dst, ','), int64(m.Minutes(airquality.Bad)), 10)
	}
	return append(dst, '\n')
}
