package ingest

import (
	"fmt"
	"strings"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// reject adds a reject: one upload and one reason.
func (o *outcome) reject(reason roomsensor.Reason, detail string, payload []byte) {
	o.rejects = append(o.rejects, roomsensor.Reject{
		Arrival: o.arrival, HardwareID: o.hardwareID(), Reason: reason, Detail: detail, Payload: payload,
	})
}

// details say what an operator can do about readings that failed; %s is which.
var details = map[roomsensor.Reason]string{
	roomsensor.ReasonMeasuredAtInvalid:    "measured_at is missing or is no UTC time such as 2026-01-31T08:00:00Z in %s.",
	roomsensor.ReasonMeasuredAtOutOfRange: "measured_at lies before 2015 or more than 10 minutes past the arrival in %s.",
	roomsensor.ReasonNotInstalled: "The unit sat in no device at measured_at of %s. " +
		"Where it did, correct that and replay this.",
	roomsensor.ReasonNotStorable: "The database refused %s for good. The worker's log has the cause.",
}

func (o *outcome) rejectReadings(failed map[roomsensor.Reason][]int) {
	for _, reason := range roomsensor.Reasons {
		readings := failed[reason]
		if len(readings) == 0 {
			continue
		}
		detail := o.unknownUnit()
		if reason != roomsensor.ReasonUnknownUnit {
			detail = fmt.Sprintf(details[reason], o.share(len(readings)))
		}
		o.reject(reason, detail, o.upload.Part(readings))
	}
}

func (o *outcome) unknownUnit() string {
	whose := "No device"
	if o.arrival.Team != nil {
		whose = "No device of the credential's team"
	}
	return fmt.Sprintf("%s ever had the unit %.100q. Register it, with the time from which it sat there, and replay this.",
		whose, o.unit)
}

func (o *outcome) share(n int) string {
	return fmt.Sprintf("%d of %d readings", n, o.readings())
}

// badValues are the readings that are stored without some of their values.
type badValues struct {
	readings []int
	metrics  uint8 // all of them together
}

func (b *badValues) note(r *upload.Reading, at int) {
	if r.BadValues != 0 {
		b.readings = append(b.readings, at)
		b.metrics |= r.BadValues
	}
}

func (o *outcome) rejectValues(bad *badValues) {
	if len(bad.readings) == 0 {
		return
	}
	var names []string
	for _, m := range roomsensor.Metrics {
		if bad.metrics&(1<<m) != 0 {
			names = append(names, m.String())
		}
	}
	o.reject(roomsensor.ReasonValueInvalid,
		fmt.Sprintf("%s outside the plausible range or no number, and stored as null, in %s.",
			strings.Join(names, ", "), o.share(len(bad.readings))),
		o.upload.Part(bad.readings))
}

func (o *outcome) rejectFields() {
	if fields := o.upload.BadFields; len(fields) > 0 {
		o.reject(roomsensor.ReasonFieldInvalid,
			strings.Join(fields, ", ")+" malformed, and left out.", o.upload.Part(nil))
	}
}

// rejectRows takes readings back that the database refused.
func (o *outcome) rejectRows(refused []row) {
	if len(refused) == 0 {
		return
	}
	readings := make([]int, len(refused))
	for i := range refused {
		readings[i] = refused[i].reading
	}
	o.reject(roomsensor.ReasonNotStorable,
		fmt.Sprintf(details[roomsensor.ReasonNotStorable], o.share(len(readings))), o.upload.Part(readings))
}

// rejectWhole puts the whole upload into the place of all that became of it.
func (o *outcome) rejectWhole() {
	o.seen, o.rejects = nil, nil
	o.reject(roomsensor.ReasonNotStorable,
		"The database refused the upload for good. The worker's log has the cause.", o.text)
}
