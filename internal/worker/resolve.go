package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/internal/upload"
)

// result is what becomes of one delivery: every reading is either stored or rejected (decision 41).
type result struct {
	delivery   *delivery
	message    *source.Message             // that the mapping read; nil for an upload
	readings   []upload.Reading            // of the upload, or of all units in the message
	devices    []uuid.UUID                 // of the readings, in their order; uuid.Nil for a rejected one
	rules      []roomsensor.SampleRule     // of the readings; nil if all are NoSample
	part       func(readings []int) []byte // returns the text with some of the readings
	heartbeats []roomsensor.DeviceHeartbeat
	rejects    []roomsensor.Reject
	stored     bool // the transactions with all of it are committed
	parked     bool // it is in rejects although the database may store it later
}

// resolve assigns the readings to devices by the installations of their units.
func (r *result) resolve(known *source.KnownUnits) {
	d := r.delivery
	switch {
	case d.refusal != nil:
		r.reject(d.refusal.Reason, d.refusal.Detail, d.text)
	case r.message != nil:
		r.resolveMessage(known)
	default:
		r.readings, r.part = d.upload.Readings, d.upload.Part
		resolution := d.upload.Resolve(d.arrival, known.Installations(d.unit))
		r.devices, r.rules = resolution.Devices, resolution.Rules
		if resolution.Heartbeat != nil {
			r.heartbeats = []roomsensor.DeviceHeartbeat{*resolution.Heartbeat}
		}
		for i := range resolution.Rejections {
			rejection := &resolution.Rejections[i]
			r.reject(rejection.Reason, rejection.Detail, d.upload.Payload(rejection))
		}
	}
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

// buckets yields the buckets of the readings that belong to a device.
func (r *result) buckets(yield func(time.Time) bool) {
	for i := range r.devices {
		if r.devices[i] != uuid.Nil && !yield(r.readings[i].Bucket()) {
			return
		}
	}
}

// rows appends the readings [from, to) that belong to a device.
func (r *result) rows(rows []roomsensor.DeviceMeasurement, from, to int) []roomsensor.DeviceMeasurement {
	for i := from; i < to; i++ {
		if r.devices[i] != uuid.Nil {
			rows = append(rows, roomsensor.DeviceMeasurement{
				DeviceID: r.devices[i], Measurement: r.readings[i].Measurement, Rule: r.rule(i),
			})
		}
	}
	return rows
}

func (r *result) rule(i int) roomsensor.SampleRule {
	if r.rules == nil {
		return roomsensor.NoSample
	}
	return r.rules[i]
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

// rejectChunks replaces all readings and rejects of the upload by one reject of the whole upload, and keeps its
// heartbeat.
func (r *result) rejectChunks(detail string) {
	r.readings, r.devices, r.rejects = nil, nil, nil
	r.reject(roomsensor.ReasonTooManyChunks, detail, r.delivery.text)
}

// rejectRefused rejects readings that the database refused with an error.
func (r *result) rejectRefused(readings []int, err error) {
	if len(readings) > 0 {
		share := upload.Share(len(readings), len(r.readings))
		r.reject(roomsensor.ReasonNotStorable, r.refusal(share, err), r.part(readings))
	}
}

// rejectWhole replaces all that became of the upload, which the database refused with an error, by one reject of the
// whole upload.
func (r *result) rejectWhole(err error) {
	r.heartbeats, r.rejects = nil, nil
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
