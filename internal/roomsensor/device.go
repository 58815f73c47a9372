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

// CurrentDevice is an item of the live snapshot (decision 17).
type CurrentDevice struct {
	Device
	Latest  *Reading
	Last24h [MetricCount]Stat
}

// Stat sums up one metric over some hours. Min, Max and Mean mean nothing
// where Count is 0.
type Stat struct {
	Min, Max, Mean float32
	Count          int64
}

// SummaryHours is the number of UTC hours that last_24h covers, the current
// one included (decision 17).
const SummaryHours = 24

// SummaryFrom is the first hour of last_24h.
func SummaryFrom(now time.Time) time.Time {
	return now.UTC().Truncate(time.Hour).Add(-(SummaryHours - 1) * time.Hour)
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
