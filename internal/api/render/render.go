// Package render appends the objects of the API as JSON. It does so by hand, because bodies of 1,000 items are common,
// and numbers and times have their own formats (decision 1).
package render

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// Device appends a Device (spec 2) with its status at now.
func Device(dst []byte, d *roomsensor.Device, now time.Time) []byte {
	dst = append(dst, '{')
	dst = appendIdentity(dst, d)
	dst = appendOptionalText(member(dst, "firmware_version"), d.FirmwareVersion)
	dst = appendState(dst, d, now)
	return append(dst, '}')
}

func appendIdentity(dst []byte, d *roomsensor.Device) []byte {
	dst = appendID(member(dst, "device_id"), d.ID)
	dst = appendText(member(dst, "hardware_id"), d.HardwareID)
	return appendOptionalText(member(dst, "display_name"), d.DisplayName)
}

func appendState(dst []byte, d *roomsensor.Device, now time.Time) []byte {
	dst = appendTags(member(dst, "metadata"), d.Metadata)
	dst = appendText(member(dst, "status"), string(roomsensor.StatusAt(now, d.LastSeenAt)))
	dst = appendOptionalInstant(member(dst, "last_seen_at"), d.LastSeenAt)
	dst = append(member(dst, "signal"), '{')
	dst = appendOptionalInt(member(dst, "rssi_dbm"), d.Signal.RSSI)
	dst = appendOptionalInt(member(dst, "bars"), d.Signal.Bars)
	dst = append(dst, '}')
	return appendActive(member(dst, "active_assignment"), d.ActiveAssignment)
}

func appendTags(dst []byte, tags map[string]string) []byte {
	dst = append(dst, '{')
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		dst = appendText(Element(dst), key)
		dst = appendText(append(dst, ':'), tags[key])
	}
	return append(dst, '}')
}

// appendActive appends the embedded assignment with its four fields (decision 15).
func appendActive(dst []byte, a *roomsensor.Assignment) []byte {
	if a == nil {
		return appendNull(dst)
	}
	dst = append(dst, '{')
	dst = appendID(member(dst, "assignment_id"), a.ID)
	dst = appendText(member(dst, "label"), a.Label)
	dst = appendInstant(member(dst, "started_at"), a.StartedAt)
	dst = appendOptionalText(member(dst, "external_ref"), a.ExternalRef)
	return append(dst, '}')
}

// Assignment appends an item of the list of assignments with its seven fields (decision 15).
func Assignment(dst []byte, a *roomsensor.Assignment) []byte {
	return append(appendAssignmentMembers(append(dst, '{'), a), '}')
}

// appendAssignmentMembers appends the seven fields of an assignment.
func appendAssignmentMembers(dst []byte, a *roomsensor.Assignment) []byte {
	dst = appendID(member(dst, "assignment_id"), a.ID)
	dst = appendText(member(dst, "type"), string(a.Type))
	dst = appendText(member(dst, "label"), a.Label)
	dst = appendText(member(dst, "home_or_travel"), string(a.HomeOrTravel))
	dst = appendInstant(member(dst, "started_at"), a.StartedAt)
	dst = appendOptionalInstant(member(dst, "ended_at"), a.EndedAt)
	return appendOptionalText(member(dst, "external_ref"), a.ExternalRef)
}

// Current appends an item of the live snapshot with its status at now. from is the begin of last_24h (decision
// 17).
func Current(dst []byte, d *roomsensor.CurrentDevice, now, from time.Time) []byte {
	dst = append(dst, '{')
	dst = appendIdentity(dst, &d.Device)
	dst = appendState(dst, &d.Device, now)
	dst = member(dst, "latest")
	if d.Latest == nil {
		dst = appendNull(dst)
	} else {
		dst = Reading(dst, d.Latest)
	}
	dst = append(member(dst, "last_24h"), '{')
	dst = appendInstant(member(dst, "from"), from)
	for _, m := range roomsensor.Metrics {
		dst = appendSummary(member(dst, m.String()), new(d.Last24h[m].Summary()))
	}
	return append(dst, '}', '}')
}

func appendSummary(dst []byte, s *roomsensor.Summary) []byte {
	if s.Count == 0 {
		return append(dst, `{"min":null,"max":null,"mean":null,"count":0}`...)
	}
	dst = append(dst, '{')
	dst = roomsensor.AppendNumber(member(dst, "min"), s.Min)
	dst = roomsensor.AppendNumber(member(dst, "max"), s.Max)
	dst = roomsensor.AppendNumber(member(dst, "mean"), s.Mean)
	dst = strconv.AppendInt(member(dst, "count"), int64(s.Count), 10)
	return append(dst, '}')
}

// Reading appends a Reading (spec 2).
func Reading(dst []byte, r *roomsensor.Reading) []byte {
	return appendReadingMembers(append(dst, '{'), r)
}

// appendReadingMembers appends the members of a Reading, and ends its object.
func appendReadingMembers(dst []byte, r *roomsensor.Reading) []byte {
	dst = appendInstant(member(dst, "bucket_at"), r.BucketAt)
	for _, m := range roomsensor.Metrics {
		dst = member(dst, m.String())
		if x, ok := r.Values.Get(m); ok {
			dst = roomsensor.AppendNumber(dst, x)
		} else {
			dst = appendNull(dst)
		}
	}
	dst = appendInstant(member(dst, "ingested_at"), r.IngestedAt)
	return append(dst, '}')
}

// TeamAssignment appends an item of GET /assignments (A18.1).
func TeamAssignment(dst []byte, a *roomsensor.DeviceAssignment) []byte {
	dst = appendAssignmentMembers(append(dst, '{'), &a.Assignment)
	dst = appendID(member(dst, "device_id"), a.DeviceID)
	dst = appendOptionalText(member(dst, "display_name"), a.DisplayName)
	return append(dst, '}')
}

// Deletion appends a deletion of readings (A5.12).
func Deletion(dst []byte, d *roomsensor.ReadingDeletion) []byte {
	dst = append(dst, '{')
	dst = appendID(member(dst, "device_id"), d.DeviceID)
	dst = appendInstant(member(dst, "from"), d.From)
	dst = appendInstant(member(dst, "to"), d.To)
	dst = appendInstant(member(dst, "deleted_at"), d.DeletedAt)
	return append(dst, '}')
}

// Change appends a reading with its device (A5.2).
func Change(dst []byte, change *roomsensor.Change) []byte {
	dst = append(dst, '{')
	dst = appendID(member(dst, "device_id"), change.DeviceID)
	return appendReadingMembers(dst, &change.Reading)
}
