package ingest

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// assemble makes one batch of what became of some deliveries. Everything in it
// is sorted by its key, so that workers that write the same keys take their
// locks in one order.
func assemble(outcomes []*outcome) (b roomsensor.Batch) {
	n := 0
	for _, o := range outcomes {
		n += len(o.rows)
	}
	rows := make([]roomsensor.DeviceMeasurement, 0, n)
	var seen []roomsensor.DeviceSeen
	for _, o := range outcomes {
		for i := range o.rows {
			rows = append(rows, o.rows[i].DeviceMeasurement)
		}
		if o.seen != nil {
			seen = append(seen, *o.seen)
		}
		b.Rejects = append(b.Rejects, o.rejects...)
	}
	b.Rows = unite(rows)
	b.Seen = newest(seen)
	slices.SortFunc(b.Rejects, compareRejects)
	return b
}

// unite sorts measurements by device and bucket and leaves one of each: a
// statement may name a key once.
func unite(rows []roomsensor.DeviceMeasurement) []roomsensor.DeviceMeasurement {
	slices.SortFunc(rows, func(a, b roomsensor.DeviceMeasurement) int {
		return cmp.Or(compareIDs(a.DeviceID, b.DeviceID), a.MeasuredAt.Compare(b.MeasuredAt))
	})
	united := rows[:0]
	for _, next := range rows {
		if n := len(united); n > 0 && sameRow(&united[n-1], &next) {
			united[n-1].Measurement = roomsensor.Unite(united[n-1].Measurement, next.Measurement)
			continue
		}
		united = append(united, next)
	}
	return united
}

func sameRow(a, b *roomsensor.DeviceMeasurement) bool {
	return a.DeviceID == b.DeviceID && a.Bucket().Equal(b.Bucket())
}

// newest sorts by device and leaves one of each, with the newest arrival of
// all, and signal and firmware of the newest arrivals that carry them.
func newest(seen []roomsensor.DeviceSeen) []roomsensor.DeviceSeen {
	slices.SortFunc(seen, func(a, b roomsensor.DeviceSeen) int { return compareIDs(a.DeviceID, b.DeviceID) })
	left := seen[:0]
	for _, next := range seen {
		if n := len(left); n > 0 && left[n-1].DeviceID == next.DeviceID {
			mergeSeen(&left[n-1], &next)
			continue
		}
		left = append(left, next)
	}
	return left
}

// mergeSeen takes over what is newer. Two arrivals of one microsecond are told
// apart by what they carry, as the tables do, so that order cannot matter.
func mergeSeen(into, from *roomsensor.DeviceSeen) {
	if from.LastSeenAt.After(into.LastSeenAt) {
		into.LastSeenAt = from.LastSeenAt
	}
	if from.Signal != nil && (into.Signal == nil ||
		cmp.Or(from.SignalAt.Compare(into.SignalAt), compareSignals(from.Signal, into.Signal)) > 0) {
		into.Signal, into.SignalAt = from.Signal, from.SignalAt
	}
	if from.Firmware != nil && (into.Firmware == nil ||
		cmp.Or(from.FirmwareAt.Compare(into.FirmwareAt), cmp.Compare(*from.Firmware, *into.Firmware)) > 0) {
		into.Firmware, into.FirmwareAt = from.Firmware, from.FirmwareAt
	}
}

// compareSignals puts an absent part before every other.
func compareSignals(a, b *roomsensor.Signal) int {
	return cmp.Or(comparePointers(a.RSSI, b.RSSI), comparePointers(a.Bars, b.Bars))
}

func comparePointers[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func compareRejects(a, b roomsensor.Reject) int {
	return cmp.Or(a.Arrival.At.Compare(b.Arrival.At),
		cmp.Compare(a.Arrival.Sequence, b.Arrival.Sequence), cmp.Compare(a.Reason, b.Reason))
}
