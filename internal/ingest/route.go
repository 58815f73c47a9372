package ingest

import (
	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// outcome is what becomes of a delivery: each part of it is a row or in a
// reject, and never in neither (decision 41).
type outcome struct {
	*delivery
	rows    []row
	seen    *roomsensor.DeviceSeen
	rejects []roomsensor.Reject
}

// row is a reading and where it belongs.
type row struct {
	roomsensor.DeviceMeasurement
	reading int // its place in the upload
}

// route judges deliveries by where their units sat.
func route(deliveries []*delivery, units map[string][]roomsensor.Installation) []*outcome {
	outcomes := make([]*outcome, len(deliveries))
	for i, d := range deliveries {
		outcomes[i] = &outcome{delivery: d}
		if d.refusal != nil {
			outcomes[i].reject(d.refusal.Reason, d.refusal.Detail, d.text)
			continue
		}
		outcomes[i].route(visible(units[d.unit], d.arrival.Team))
	}
	return outcomes
}

// visible are the installations that a credential's team may upload for; for
// an upload from trusted ground, all of them.
func visible(installations []roomsensor.Installation, team *uuid.UUID) []roomsensor.Installation {
	if team == nil {
		return installations
	}
	var theirs []roomsensor.Installation
	for _, i := range installations {
		if i.TeamID == *team {
			theirs = append(theirs, i)
		}
	}
	return theirs
}

func (o *outcome) route(installations []roomsensor.Installation) {
	var failed map[roomsensor.Reason][]int
	var bad badValues
	readings := o.upload.Readings
	o.rows = make([]row, 0, len(readings))
	for i := range readings {
		reason, device := place(&readings[i], installations)
		if reason != "" {
			if failed == nil {
				failed = make(map[roomsensor.Reason][]int)
			}
			failed[reason] = append(failed[reason], i)
			continue
		}
		o.rows = append(o.rows, row{roomsensor.DeviceMeasurement{DeviceID: device, Measurement: readings[i].Measurement}, i})
		bad.note(&readings[i], i)
	}
	o.rejectReadings(failed)
	if len(readings) == 0 && len(installations) == 0 {
		o.reject(roomsensor.ReasonUnknownUnit, o.unknownUnit(), o.text)
	}
	o.rejectValues(&bad)
	o.rejectFields()
	o.look(installations)
}

// place finds the device that a reading belongs to, or the first of the four
// reasons about time and unit that holds for it (decision 41).
func place(r *upload.Reading, installations []roomsensor.Installation) (roomsensor.Reason, uuid.UUID) {
	switch {
	case r.Problem != "":
		return r.Problem, uuid.Nil
	case len(installations) == 0:
		return roomsensor.ReasonUnknownUnit, uuid.Nil
	}
	for i := range installations {
		if installations[i].Covers(r.MeasuredAt) {
			return "", installations[i].DeviceID
		}
	}
	return roomsensor.ReasonNotInstalled, uuid.Nil
}

// look notes that the device in which the unit sits at arrival was seen,
// whatever became of the readings (decision 39).
func (o *outcome) look(installations []roomsensor.Installation) {
	for i := range installations {
		if !installations[i].Covers(o.arrival.At) {
			continue
		}
		at := o.arrival.At
		o.seen = &roomsensor.DeviceSeen{DeviceID: installations[i].DeviceID, LastSeenAt: at}
		if o.upload.Signal != nil {
			o.seen.Signal, o.seen.SignalAt = o.upload.Signal, at
		}
		if o.upload.Firmware != nil {
			o.seen.Firmware, o.seen.FirmwareAt = o.upload.Firmware, at
		}
		return
	}
}
