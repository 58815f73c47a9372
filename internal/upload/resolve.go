package upload

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Resolution is what becomes of an upload before the database sees it: every reading is assigned to a device or
// rejected (decision 41).
type Resolution struct {
	Devices    []uuid.UUID                 // of the readings, in their order; uuid.Nil for a rejected one
	Rules      []roomsensor.SampleRule     // of the readings that belong to a device; nil if all are NoSample
	Heartbeat  *roomsensor.DeviceHeartbeat // nil if the unit was in no device at the arrival
	Rejections []Rejection                 // at most one per reason, in the order of decision 41 i
}

// Rejection is what is rejected of an upload for one reason.
type Rejection struct {
	Refusal

	readings []int // that failed
	whole    bool  // the upload itself failed
}

// Payload returns the text of what is rejected of the upload: the upload with only the readings that failed.
func (u *Upload) Payload(r *Rejection) []byte {
	if r.whole && u.part == nil {
		return u.text
	}
	return u.Part(r.readings)
}

// resolver resolves one upload.
type resolver struct {
	*Upload
	Resolution

	arrival       roomsensor.Arrival
	installations []roomsensor.Installation
}

// Resolve assigns the readings to devices by all installations of the unit. Those in devices of other teams than the
// one of the arrival do not count.
func (u *Upload) Resolve(arrival roomsensor.Arrival, installations []roomsensor.Installation) Resolution {
	r := &resolver{Upload: u, arrival: arrival, installations: visible(installations, arrival.Team)}
	r.Devices = make([]uuid.UUID, len(u.Readings))
	failed := map[roomsensor.Reason][]int{}
	var invalid invalidValues
	for i := range u.Readings {
		reason, in := r.installationOf(&u.Readings[i])
		if reason != "" {
			failed[reason] = append(failed[reason], i)
			continue
		}
		r.Devices[i] = in.DeviceID
		if in.Samples != roomsensor.NoSample {
			if r.Rules == nil {
				r.Rules = make([]roomsensor.SampleRule, len(u.Readings))
			}
			r.Rules[i] = in.Samples
		}
		invalid.add(&u.Readings[i], i)
	}
	r.rejectReadings(failed)
	if len(u.Readings) == 0 && len(r.installations) == 0 {
		r.reject(Rejection{Refusal: r.unknownUnit(), whole: true})
	}
	r.rejectValues(&invalid)
	r.rejectFields()
	r.Heartbeat = r.heartbeat()
	return r.Resolution
}

// visible returns the installations in devices of the credential's team, or all of them for a trusted publisher.
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

// installationOf returns the installation of the unit when the reading was measured. Otherwise it returns the first
// reason that applies, in the order of decision 41.
func (r *resolver) installationOf(reading *Reading) (roomsensor.Reason, *roomsensor.Installation) {
	switch {
	case reading.Problem != "":
		return reading.Problem, nil
	case len(r.installations) == 0:
		return roomsensor.ReasonUnknownUnit, nil
	}
	for i := range r.installations {
		switch {
		case !r.installations[i].Covers(reading.MeasuredAt):
		case !reading.HasMetric:
			return roomsensor.ReasonNoMetric, nil
		default:
			return "", &r.installations[i]
		}
	}
	return roomsensor.ReasonNotInstalled, nil
}

// heartbeat returns the heartbeat of the device in which the unit was installed at the arrival, whatever becomes of the
// readings (decision 39). It returns nil where there is none.
func (r *resolver) heartbeat() *roomsensor.DeviceHeartbeat {
	at := r.arrival.At
	for i := range r.installations {
		if !r.installations[i].Covers(at) {
			continue
		}
		h := &roomsensor.DeviceHeartbeat{DeviceID: r.installations[i].DeviceID, LastSeenAt: at}
		if r.Signal != nil {
			h.Signal, h.SignalAt = r.Signal, at
		}
		if r.Firmware != nil {
			h.Firmware, h.FirmwareAt = r.Firmware, at
		}
		return h
	}
	return nil
}

func (r *resolver) reject(rejection Rejection) { r.Rejections = append(r.Rejections, rejection) }

// details tell an operator what is wrong with rejected readings, and how to correct it. %s is replaced by their number.
var details = map[roomsensor.Reason]string{
	roomsensor.ReasonMeasuredAtInvalid:    "measured_at is missing or not a UTC time such as 2026-01-31T08:00:00Z in %s.",
	roomsensor.ReasonMeasuredAtOutOfRange: "measured_at is before 2015 or more than 10 minutes after the arrival in %s.",
	roomsensor.ReasonNotInstalled: "The unit was in no device at measured_at of %s. " +
		"If it was, correct its installation times and replay this reject.",
	roomsensor.ReasonNoMetric: "None of the metrics " + metricNames(math.MaxUint8) + " is a member of %s. " +
		"Check their names in the sender.",
}

// metricNames lists the metrics whose bits are set.
func metricNames(bits uint8) string {
	var names []string
	for _, m := range roomsensor.Metrics {
		if bits&(1<<m) != 0 {
			names = append(names, m.String())
		}
	}
	return strings.Join(names, ", ")
}

func (r *resolver) rejectReadings(failed map[roomsensor.Reason][]int) {
	for _, reason := range roomsensor.Reasons {
		readings := failed[reason]
		if len(readings) == 0 {
			continue
		}
		refusal := r.unknownUnit()
		if reason != roomsensor.ReasonUnknownUnit {
			refusal = Refusal{reason, fmt.Sprintf(details[reason], Share(len(readings), len(r.Readings)))}
		}
		r.reject(Rejection{Refusal: refusal, readings: readings})
	}
}

func (r *resolver) unknownUnit() Refusal {
	whose := "No device"
	if r.arrival.Team != nil {
		whose = "No device of the credential's team"
	}
	return Refusal{roomsensor.ReasonUnknownUnit, fmt.Sprintf(
		"%s ever had the unit %.100q. Register it, with its installation time, and replay this reject.",
		whose, r.HardwareID)}
}

// Share returns a number of readings and that of all readings, for a sentence.
func Share(n, all int) string {
	return fmt.Sprintf("%d of %d readings", n, all)
}

// invalidValues collects the readings that are stored without some of their values.
type invalidValues struct {
	readings   []int
	outside    uint8 // bit i is set where metric i is outside its range in any of them
	notNumbers uint8 // and where it is not a number
}

func (v *invalidValues) add(r *Reading, i int) {
	if r.BadValues != 0 {
		v.readings = append(v.readings, i)
		v.outside |= r.BadValues &^ r.NotNumbers
		v.notNumbers |= r.NotNumbers
	}
}

func (r *resolver) rejectValues(invalid *invalidValues) {
	if len(invalid.readings) == 0 {
		return
	}
	var causes []string
	if names := metricNames(invalid.outside); names != "" {
		causes = append(causes, names+" is outside its plausible range")
	}
	if names := metricNames(invalid.notNumbers); names != "" {
		cause := names + " is not a number"
		if r.part == nil { // A mapping of a source reads numbers in quotes too.
			cause += " (in quotes it is a text)"
		}
		causes = append(causes, cause)
	}
	r.reject(Rejection{
		Refusal: Refusal{roomsensor.ReasonValueInvalid, fmt.Sprintf("%s and becomes null in %s.",
			strings.Join(causes, ", "), Share(len(invalid.readings), len(r.Readings)))},
		readings: invalid.readings,
	})
}

func (r *resolver) rejectFields() {
	if len(r.BadFields) > 0 {
		r.reject(Rejection{Refusal: Refusal{
			roomsensor.ReasonFieldInvalid, strings.Join(r.BadFields, ", ") + " malformed and ignored.",
		}})
	}
}
