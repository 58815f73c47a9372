package render

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/completeness"
)

// Aggregate appends an item of GET /devices/{device_id}/aggregates (A1.6) with some metrics.
func Aggregate(dst []byte, a *aggregate.Aggregate, metrics []roomsensor.Metric) []byte {
	dst = append(dst, '{')
	dst = appendInstant(member(dst, "bucket_at"), a.Bucket.From)
	dst = appendInstant(member(dst, "bucket_end"), a.Bucket.To)
	dst = strconv.AppendInt(member(dst, "expected"), int64(a.Expected), 10)
	dst = strconv.AppendInt(member(dst, "present"), int64(a.Present), 10)
	for _, m := range metrics {
		dst = appendSummary(member(dst, m.String()), &a.Metrics[m])
	}
	return append(dst, '}')
}

// Coverage appends an item of GET /coverage (A3.2) with the status at now.
func Coverage(dst []byte, d *completeness.DeviceCoverage, now time.Time) []byte {
	dst = append(dst, '{')
	dst = appendID(member(dst, "device_id"), d.ID)
	dst = appendOptionalText(member(dst, "display_name"), d.DisplayName)
	dst = appendText(member(dst, "status"), string(roomsensor.StatusAt(now, d.LastSeenAt)))
	dst = appendActive(member(dst, "active_assignment"), d.ActiveAssignment)
	dst = strconv.AppendInt(member(dst, "expected"), int64(d.Expected), 10)
	dst = strconv.AppendInt(member(dst, "present"), int64(d.Present), 10)
	dst = d.AppendRatio(member(dst, "coverage"))
	dst = appendOptionalInstant(member(dst, "first_bucket_at"), d.First)
	dst = appendOptionalInstant(member(dst, "last_bucket_at"), d.Last)
	dst = member(dst, "longest_gap")
	if d.LongestGap == nil {
		dst = appendNull(dst)
	} else {
		dst = Gap(dst, d.LongestGap)
	}
	dst = append(member(dst, "metrics"), '{')
	for _, m := range roomsensor.Metrics {
		dst = strconv.AppendInt(member(dst, m.String()), int64(d.Metrics[m]), 10)
	}
	return append(dst, '}', '}')
}

// Gap appends an item of GET /devices/{device_id}/gaps (A4.2).
func Gap(dst []byte, gap *roomsensor.Window) []byte {
	dst = append(dst, '{')
	dst = appendInstant(member(dst, "from"), gap.From)
	dst = appendInstant(member(dst, "to"), gap.To)
	dst = strconv.AppendInt(member(dst, "missing"), int64(gap.Buckets()), 10)
	return append(dst, '}')
}

// NightItem is an assignment in a night.
type NightItem struct {
	Date time.Time
	Room *airquality.NightRoom
}

// Night appends an item of GET /nights (A17.2).
func Night(dst []byte, n *NightItem) []byte {
	room, a := n.Room, &n.Room.Assignment
	dst = appendText(member(append(dst, '{'), "night"), n.Date.Format(time.DateOnly))
	dst = appendInstant(member(dst, "from"), room.Window.From)
	dst = appendInstant(member(dst, "to"), room.Window.To)
	dst = appendID(member(dst, "assignment_id"), a.ID)
	dst = appendText(member(dst, "type"), string(a.Type))
	dst = appendText(member(dst, "label"), a.Label)
	dst = appendOptionalText(member(dst, "external_ref"), a.ExternalRef)
	dst = appendID(member(dst, "device_id"), a.DeviceID)
	dst = appendOptionalText(member(dst, "display_name"), room.DeviceName)
	dst = appendText(member(dst, "verdict"), room.Verdict().String())
	dst = strconv.AppendInt(member(dst, "expected"), int64(room.Expected), 10)
	dst = strconv.AppendInt(member(dst, "present"), int64(room.Present), 10)
	dst = room.AppendCoverage(member(dst, "coverage"))
	for _, m := range roomsensor.Metrics {
		dst = appendNightMetric(member(dst, m.String()), &room.Metrics[m])
	}
	return append(dst, '}')
}

func appendNightMetric(dst []byte, m *airquality.NightMetric) []byte {
	if dst = append(dst, '{'); m.Count == 0 {
		dst = append(dst, `"min":null,"mean":null,"max":null`...)
	} else {
		dst = roomsensor.AppendNumber(member(dst, "min"), m.Min)
		dst = roomsensor.AppendNumber(member(dst, "mean"), m.Mean)
		dst = roomsensor.AppendNumber(member(dst, "max"), m.Max)
	}
	dst = strconv.AppendInt(member(dst, "minutes_warn"), int64(m.Minutes(airquality.Stuffy)), 10)
	dst = strconv.AppendInt(member(dst, "minutes_bad"), int64(m.Minutes(airquality.Bad)), 10)
	return append(dst, '}')
}
