package wording

import (
	"fmt"
	"strconv"
	"strings"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
)

// alertRoom returns the name of what an alert is about, with who has the room.
func alertRoom(a *alerting.Alert) string {
	if a.Label == "" || a.Label == a.Name {
		return a.Name
	}
	return a.Name + " (" + a.Label + ")"
}

// AlertText says what is wrong.
func (f Format) AlertText(a *alerting.Alert) string {
	switch a.Rule {
	case alerting.RuleBad:
		return alertRoom(a) + " has bad air: " + f.cause(a.Detail)
	case alerting.RuleSilent:
		return alertRoom(a) + " sends nothing"
	case alerting.RuleCoverage:
		return "Readings of the night are missing in " + alertRoom(a) + ": " + a.Detail
	case alerting.RuleRejects:
		return "Readings of " + alertRoom(a) + " are rejected: " + a.Detail
	}
	return alertRoom(a)
}

// AlertDo says what people can do about an alert.
func AlertDo(a *alerting.Alert) string {
	switch a.Rule {
	case alerting.RuleBad:
		return "Air the room."
	case alerting.RuleSilent, alerting.RuleCoverage:
		return "Check that the device has power and a connection."
	case alerting.RuleRejects:
		return "An admin finds the cause on the page Rejects."
	}
	return ""
}

// AlertEnded says why an alert ended; empty while it is open.
func AlertEnded(a *alerting.Alert) string {
	switch a.Outcome {
	case alerting.Over:
		return "Over"
	case alerting.Unknown:
		return "Ended without fresh readings"
	case alerting.Retracted:
		return "Withdrawn, because late readings changed what was known"
	case alerting.Off:
		return "Ended, because the rule was switched off"
	}
	return ""
}

// AlertDetail returns the detail of an alert about bad air: the metric, the side and the limit, such as
// "co2_ppm above 1400". AlertText says it in words.
func AlertDetail(c airquality.Cause) string {
	return c.Metric.String() + " " + side(c.High) + " " + airquality.FormatLimit(&c.Limit)
}

// cause says which metric is bad, by the detail of an alert.
func (f Format) cause(detail string) string {
	name, rest, _ := strings.Cut(detail, " ")
	side, limit, _ := strings.Cut(rest, " ")
	for _, m := range roomsensor.Metrics {
		if x, err := strconv.ParseFloat(limit, 32); m.String() == name && err == nil {
			return MetricTexts[m].Name + " " + side + " " + f.Limit(m, float32(x))
		}
	}
	return detail
}

// Arrived says how many readings of a night arrived.
func Arrived(present, expected int) string { return fmt.Sprintf("%d of %d arrived", present, expected) }
