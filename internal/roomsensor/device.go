package roomsensor

import (
	"maps"
	"time"

	"github.com/google/uuid"
)

// Signal is the cellular signal at the last upload; both parts are null before
// the first (decision 14).
type Signal struct {
	RSSI *int32 // dBm
	Bars *int16 // 0 to 5
}

// Device is a device as its team sees it (spec 2, Device).
type Device struct {
	ID               uuid.UUID
	HardwareID       string
	DisplayName      *string
	FirmwareVersion  *string
	Metadata         map[string]string
	LastSeenAt       *time.Time
	Signal           Signal
	ActiveAssignment *Assignment
}

// Status is the freshness of a device's data (spec 3, Device status).
type Status string

// The states of spec 3.
const (
	Online  Status = "online"
	Stale   Status = "stale"
	Offline Status = "offline"
)

// The ages of last_seen_at at which the status changes (decision 16).
const (
	staleFrom    = time.Hour
	offlineAfter = 24 * time.Hour
)

// StatusAt computes the status from the age of last_seen_at; nil never reported.
func StatusAt(now time.Time, lastSeen *time.Time) Status {
	switch {
	case lastSeen == nil:
		return Offline
	case now.Sub(*lastSeen) < staleFrom:
		return Online
	case now.Sub(*lastSeen) <= offlineAfter:
		return Stale
	}
	return Offline
}

// StatusUntil is when the status of now changes, if nothing is uploaded.
func StatusUntil(now time.Time, lastSeen *time.Time) time.Time {
	switch StatusAt(now, lastSeen) {
	case Online:
		return lastSeen.Add(staleFrom)
	case Stale:
		return lastSeen.Add(offlineAfter + 1) // At 24 hours it is stale still.
	case Offline: // Until an upload.
	}
	return Forever
}

// CurrentDevice is an item of the live snapshot (decision 17).
type CurrentDevice struct {
	Device
	Latest  *Reading
	Last24h Stats
}

// Stats sums up each metric over some hours.
type Stats [MetricCount]Stat

// Plus sums up the hours of both.
func (s Stats) Plus(o Stats) Stats {
	for m := range s {
		s[m] = s[m].plus(o[m])
	}
	return s
}

// Stat sums up one metric over some hours. Min and Max mean nothing where Count
// is 0.
type Stat struct {
	Min, Max float32
	Sum      float64 // in 64 bits, so that no digit of a mean is lost
	Count    int64
}

// Mean is sum / count in 64 bits, as a 32-bit value; -0 is 0 here as in a
// reading. It means nothing where Count is 0 (decision 17).
func (s Stat) Mean() float32 { return float32(s.Sum/float64(s.Count)) + 0 }

func (s Stat) plus(o Stat) Stat {
	switch {
	case s.Count == 0:
		return o
	case o.Count == 0:
		return s
	}
	return Stat{Min: min(s.Min, o.Min), Max: max(s.Max, o.Max), Sum: s.Sum + o.Sum, Count: s.Count + o.Count}
}

// summaryLength is what last_24h covers, the current UTC hour included
// (decision 17).
const summaryLength = 24 * time.Hour

// SummaryWindow is the window of last_24h: the current UTC hour and the 23
// before it (decision 17).
func SummaryWindow(now time.Time) Window {
	end := now.UTC().Truncate(time.Hour).Add(time.Hour)
	return Window{From: end.Add(-summaryLength), To: end}
}

// DeviceQuery selects a page of a team's devices, by device_id ascending
// (decision 10).
type DeviceQuery struct {
	Metadata map[string]string // every pair must be there (spec 4, GET /devices)
	After    *uuid.UUID        // the last id of the page before; nil on the first
	Limit    int
}

// DevicePatch is a change of a device; a part that is not Set stays as it is.
type DevicePatch struct {
	SetDisplayName bool
	DisplayName    *string // nil clears it
	Metadata       MetadataPatch
}

// MetadataPatch merges into the stored tags as RFC 7396 says (decision 21).
type MetadataPatch struct {
	Clear  bool               // metadata: null
	Values map[string]*string // nil removes the key
}

// Apply merges the patch into tags and returns the result; tags are not changed.
func (p MetadataPatch) Apply(tags map[string]string) map[string]string {
	merged := make(map[string]string, len(tags)+len(p.Values))
	if !p.Clear {
		maps.Copy(merged, tags)
	}
	for key, value := range p.Values {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = *value
		}
	}
	return merged
}
