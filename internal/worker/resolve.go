package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// result is what becomes of one delivery: every reading is either stored or rejected (decision 41).
type result struct {
	delivery  *delivery
	devices   []uuid.UUID                 // of the readings of the upload, in their order; uuid.Nil for a rejected one
	heartbeat *roomsensor.DeviceHeartbeat // nil if the unit was in no device at the arrival
	rejects   []roomsensor.Reject
	stored    bool // the transactions with all of it are committed
	parked    bool // it is in rejects although the database may store it later
}

// resolve assigns the readings to devices by the installations of the upload's unit.
func (r *result) resolve(units map[string][]roomsensor.Installation) {
	d := r.delivery
	if d.refusal != nil {
		r.reject(d.refusal.Reason, d.refusal.Detail, d.text)
		return
	}
	installations := visible(units[d.unit], d.arrival.Team)
	readings := d.upload.Readings
	r.devices = make([]uuid.UUID, len(readings))
	failed := map[roomsensor.Reason][]int{}
	var invalid invalidValues
	for i := range readings {
		reason, device := assignDevice(&readings[i], installations)
		if reason != "" {
			failed[reason] = append(failed[reason], i)
			continue
		}
		r.devices[i] = device
		invalid.add(&readings[i], i)
	}
	r.rejectReadings(failed)
	if len(readings) == 0 && len(installations) == 0 {
		r.reject(roomsensor.ReasonUnknownUnit, r.unknownUnit(), d.text)
	}
	r.rejectValues(&invalid)
	r.rejectFields()
	r.heartbeat = d.heartbeat(installations)
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

// assignDevice returns the device in which the unit sat when the reading was measured. Otherwise it returns the first
// reason that applies, in the order of decision 41.
func assignDevice(r *upload.Reading, installations []roomsensor.Installation) (roomsensor.Reason, uuid.UUID) {
	switch {
	case r.Problem != "":
		return r.Problem, uuid.Nil
	case len(installations) == 0:
		return roomsensor.ReasonUnknownUnit, uuid.Nil
	}
	for i := range installations {
		switch {
		case !installations[i].Covers(r.MeasuredAt):
		case !r.HasMetric:
			return roomsensor.ReasonNoMetric, uuid.Nil
		default:
			return "", installations[i].DeviceID
		}
	}
	return roomsensor.ReasonNotInstalled, uuid.Nil
}

// heartbeat returns the heartbeat of the device in which the unit sat at the arrival, whatever becomes of the readings
// (decision 39). It returns nil where there is none.
func (d *delivery) heartbeat(installations []roomsensor.Installation) *roomsensor.DeviceHeartbeat {
	at := d.arrival.At
	for i := range installations {
		if !installations[i].Covers(at) {
			continue
		}
		h := &roomsensor.DeviceHeartbeat{DeviceID: installations[i].DeviceID, LastSeenAt: at}
		if d.upload.Signal != nil {
			h.Signal, h.SignalAt = d.upload.Signal, at
		}
		if d.upload.Firmware != nil {
			h.Firmware, h.FirmwareAt = d.upload.Firmware, at
		}
		return h
	}
	return nil
}

// resolved counts the readings that belong to a device.
func (r *result) resolved() (n int) {
	for i := range r.devices {
		if r.devices[i] != uuid.Nil {
			n++
		}
	}
	return n
}

// days counts the days of the readings that belong to a device.
func (r *result) days() int {
	const day = 24 * 60 * 60
	days, last := map[int64]struct{}{}, int64(-1)
	for i := range r.devices {
		if r.devices[i] == uuid.Nil {
			continue
		}
		if d := r.delivery.upload.Readings[i].MeasuredAt.Unix() / day; d != last {
			days[d], last = struct{}{}, d
		}
	}
	return len(days)
}

// buckets lists the buckets of the readings that belong to a device.
func (r *result) buckets() (buckets []time.Time) {
	for i := range r.devices {
		if r.devices[i] != uuid.Nil {
			buckets = append(buckets, r.delivery.upload.Readings[i].Bucket())
		}
	}
	return buckets
}

// rows appends the readings [from, to) that belong to a device.
func (r *result) rows(rows []roomsensor.DeviceMeasurement, from, to int) []roomsensor.DeviceMeasurement {
	for i := from; i < to; i++ {
		if r.devices[i] != uuid.Nil {
			rows = append(rows, roomsensor.DeviceMeasurement{
				DeviceID: r.devices[i], Measurement: r.delivery.upload.Readings[i].Measurement,
			})
		}
	}
	return rows
}

// reject adds a reject: one upload and one reason.
func (r *result) reject(reason roomsensor.Reason, detail string, payload []byte) {
	r.rejects = append(r.rejects, roomsensor.Reject{
		Arrival: r.delivery.arrival, HardwareID: r.delivery.hardwareID(), Reason: reason, Detail: detail, Payload: payload,
	})
}

// Skipped returns the reject of a message that an operator sets aside: the one that a worker would make of an unusable
// upload, else one of the whole upload.
func Skipped(m *queue.Delivery) roomsensor.Reject {
	r := result{delivery: received(m)}
	if refusal := r.delivery.refusal; refusal != nil {
		r.reject(refusal.Reason, refusal.Detail, r.delivery.text)
	} else {
		r.reject(roomsensor.ReasonNotStorable,
			"An operator skipped the upload. Remove the cause and replay this reject.", r.delivery.text)
	}
	return r.rejects[0]
}

// details tell an operator what is wrong with rejected readings, and how to correct it. %s is replaced by their number.
var details = map[roomsensor.Reason]string{
	roomsensor.ReasonMeasuredAtInvalid:    "measured_at is missing or not a UTC time such as 2026-01-31T08:00:00Z in %s.",
	roomsensor.ReasonMeasuredAtOutOfRange: "measured_at is before 2015 or more than 10 minutes after the arrival in %s.",
	roomsensor.ReasonNotInstalled: "The unit was in no device at measured_at of %s. " +
		"If it was, correct its installation times and replay this reject.",
	roomsensor.ReasonNoMetric: "None of the metrics " + metricNames() + " is a member of %s. " +
		"Check their names in the sender.",
}

func metricNames() string {
	var names []string
	for _, m := range roomsensor.Metrics {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

func (r *result) rejectReadings(failed map[roomsensor.Reason][]int) {
	for _, reason := range roomsensor.Reasons {
		readings := failed[reason]
		if len(readings) == 0 {
			continue
		}
		detail := r.unknownUnit()
		if reason != roomsensor.ReasonUnknownUnit {
			detail = fmt.Sprintf(details[reason], r.share(len(readings)))
		}
		r.reject(reason, detail, r.delivery.upload.Part(readings))
	}
}

func (r *result) unknownUnit() string {
	whose := "No device"
	if r.delivery.arrival.Team != nil {
		whose = "No device of the credential's team"
	}
	return fmt.Sprintf("%s ever had the unit %.100q. Register it, with its installation time, and replay this reject.",
		whose, r.delivery.unit)
}

func (r *result) share(n int) string {
	return fmt.Sprintf("%d of %d readings", n, r.delivery.readings())
}

// invalidValues collects the readings that are stored without some of their values.
type invalidValues struct {
	readings []int
	metrics  uint8 // bit i is set where metric i is invalid in any of them
}

func (v *invalidValues) add(r *upload.Reading, i int) {
	if r.BadValues != 0 {
		v.readings = append(v.readings, i)
		v.metrics |= r.BadValues
	}
}

func (r *result) rejectValues(invalid *invalidValues) {
	if len(invalid.readings) == 0 {
		return
	}
	var names []string
	for _, m := range roomsensor.Metrics {
		if invalid.metrics&(1<<m) != 0 {
			names = append(names, m.String())
		}
	}
	r.reject(roomsensor.ReasonValueInvalid,
		fmt.Sprintf("%s is outside its plausible range or not a number, and was stored as null, in %s.",
			strings.Join(names, ", "), r.share(len(invalid.readings))),
		r.delivery.upload.Part(invalid.readings))
}

func (r *result) rejectFields() {
	if fields := r.delivery.upload.BadFields; len(fields) > 0 {
		r.reject(roomsensor.ReasonFieldInvalid,
			strings.Join(fields, ", ")+" malformed and ignored.", r.delivery.upload.Part(nil))
	}
}

// rejectChunks replaces all readings and rejects of the upload by one reject of the whole upload, and keeps its
// heartbeat.
func (r *result) rejectChunks(created int) {
	r.devices, r.rejects = nil, nil
	r.reject(roomsensor.ReasonTooManyChunks, fmt.Sprintf(
		"The upload would create %d chunks of the table readings; at most %d are allowed. "+
			"If its measured_at are right, replay this reject.", created, roomsensor.MaxNewChunks), r.delivery.text)
}

// rejectRefused rejects readings that the database refused with an error.
func (r *result) rejectRefused(readings []int, err error) {
	if len(readings) > 0 {
		r.reject(roomsensor.ReasonNotStorable, r.refusal(r.share(len(readings)), err), r.delivery.upload.Part(readings))
	}
}

// rejectWhole replaces all that became of the upload, which the database refused with an error, by one reject of the
// whole upload.
func (r *result) rejectWhole(err error) {
	r.heartbeat, r.rejects = nil, nil
	r.reject(roomsensor.ReasonNotStorable, r.refusal("the upload", err), r.delivery.text)
}

// refusal tells an operator what the database refused. Where it was not a permanent error, the upload is parked.
func (r *result) refusal(what string, err error) string {
	if errors.Is(err, roomsensor.ErrNotStorable) {
		return fmt.Sprintf("The database permanently refused %s%s. The worker's log has the cause.", what, sqlState(err))
	}
	r.parked = true
	return fmt.Sprintf("The database still refused %s at delivery %d%s. The worker's log has the cause. "+
		"Remove it and replay this reject.", what, r.delivery.deliveries, sqlState(err))
}

// notStorable reports whether the upload has a reject because the database refused a part of it.
func (r *result) notStorable() bool {
	return slices.ContainsFunc(r.rejects, func(reject roomsensor.Reject) bool {
		return reject.Reason == roomsensor.ReasonNotStorable
	})
}
