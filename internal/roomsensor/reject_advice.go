package roomsensor

// Advice says what people can do about rejects with a reason.
type Advice struct {
	Cause      string // what was wrong with the uploads
	Fix        string // what to do
	Replayable bool   // whether a replay can store them once the cause is gone
}

// advice has a sentence for each reason. docs/operate/rejects.md says the same with the commands of operators.
var advice = map[Reason]Advice{
	ReasonNotParsable: {
		Cause: "The upload is not a JSON object of the expected form.",
		Fix:   "Fix the program that sends it. A replay cannot help.",
	},
	ReasonHardwareIDMismatch: {
		Cause: "The upload was published under the id of another unit.",
		Fix:   "Fix the gateway that sends it. A replay cannot help.",
	},
	ReasonTooManyReadings: {
		Cause: "The upload has more than 10,000 readings.",
		Fix:   "Fix the program that sends it: it must split its uploads. Then send the readings again.",
	},
	ReasonMeasuredAtInvalid: {
		Cause: "Readings have no time, or one that is not a UTC time such as 2026-01-31T08:00:00Z.",
		Fix:   "Fix the program that sends them. A replay cannot help.",
	},
	ReasonMeasuredAtOutOfRange: {
		Cause: "Readings are from before 2015, or more than 10 minutes later than their arrival.",
		Fix:   "Check the clock of the unit: without a time, it counts from 1970. A replay cannot help.",
	},
	ReasonUnknownUnit: {
		Cause: "No device of your team ever had this unit.",
		Fix: "Register the unit, then replay its rejects. If it belongs to another team, " +
			"give its gateway an upload credential of that team.",
		Replayable: true,
	},
	ReasonNotInstalled: {
		Cause:      "The unit was in no device of your team at the time of the readings.",
		Fix:        "If it was, ask your operator to correct when it was installed. Then replay the rejects.",
		Replayable: true,
	},
	ReasonNoMetric: {
		Cause: "Readings have none of the five metrics. Usually their names are misspelled.",
		Fix:   "Fix the names in the program that sends them, and send the readings again. A replay cannot help.",
	},
	ReasonValueInvalid: {
		Cause: "A value is not a number, or outside the range that a sensor can measure. The rest of the reading is stored.",
		Fix:   "Check the sensor. No replay is needed.",
	},
	ReasonFieldInvalid: {
		Cause: "The signal, the firmware version or the time of sending is malformed. Everything else is stored.",
		Fix:   "Check the firmware of the unit. No replay is needed.",
	},
	ReasonTooManyChunks: {
		Cause: "The readings of one upload, or of all uploads of the team on one day, are spread over so many years that " +
			"storing them would slow down every query.",
		Fix: "Check the clock of the unit. If the times are right, as in an import of old data, send fewer years in one " +
			"upload, replay the rejects on another day, or ask your operator to replay them.",
		Replayable: true,
	},
	ReasonNotStorable: {
		Cause:      "The database refused the readings.",
		Fix:        "Tell your operator. Replay the rejects once the cause is gone.",
		Replayable: true,
	},
	ReasonNotMapped: {
		Cause: "The mapping of the source does not fit the message: a value that it needs is missing or not usable.",
		Fix: "Read what is missing. If the message has it under another name, change the mapping of the source, " +
			"then replay the rejects. Otherwise correct the sender.",
		Replayable: true,
	},
}

// Advice returns what people can do about rejects with this reason.
func (r Reason) Advice() Advice { return advice[r] }

// ReplayableReasons lists the reasons with which a reject can be replayed.
func ReplayableReasons() (reasons []Reason) {
	for _, r := range Reasons {
		if r.Advice().Replayable {
			reasons = append(reasons, r)
		}
	}
	return reasons
}
