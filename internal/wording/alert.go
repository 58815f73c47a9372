package wording

import (
	"fmt"

	"roomsensor/internal/roomsensor"
)

// alertRoom returns the name of what an alert is about, with who has the room.
func alertRoom(a *roomsensor.Alert) string {
	if a.Label == "" || a.Label == a.Name {
		return a.Name
	}
	return a.Name + " (" + a.Label + ")"
}

// AlertText says what is wrong.
func AlertText(a *roomsensor.Alert) string {
	switch a.Rule {
	case roomsensor.RuleBad:
		return alertRoom(a) + " has bad air: " + a.Detail
	case roomsensor.RuleSilent:
		return alertRoom(a) + " sends nothing"
	case roomsensor.RuleCoverage:
		return "Readings of the night are missing in " + alertRoom(a) + ": " + a.Detail
	case roomsensor.RuleRejects:
		return "Readings of " + alertRoom(a) + " are rejected: " + a.Detail
	}
	return alertRoom(a)
}

// AlertDo says what people can do about an alert.
func AlertDo(a *roomsensor.Alert) string {
	switch a.Rule {
	case roomsensor.RuleBad:
		return "Air the room."
	case roomsensor.RuleSilent, roomsensor.RuleCoverage:
		return "Check that the device has power and a connection."
	case roomsensor.RuleRejects:
		return "An admin finds the cause on the page Rejects."
	}
	return ""
}

// AlertEnded says why an alert ended; empty while it is open.
func AlertEnded(a *roomsensor.Alert) string {
	switch a.Outcome {
	case roomsensor.AlertOver:
		return "Over"
	case roomsensor.AlertUnknown:
		return "Ended without fresh readings"
	case roomsensor.AlertRetracted:
		return "Withdrawn, because late readings changed what was known"
	case roomsensor.AlertOff:
		return "Ended, because the rule was switched off"
	}
	return ""
}

// AlertCause says which metric of a reading is bad.
func AlertCause(c roomsensor.Cause) string {
	return MetricTexts[c.Metric].Name + " " + side(c.High) + " " + Limit(c.Metric, c.Limit)
}

// Arrived says how many readings of a night arrived.
func Arrived(present, expected int) string { return fmt.Sprintf("%d of %d arrived", present, expected) }
