package roomsensor

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
)

// MaxBars is the greatest number of bars of a signal (decision 14).
const MaxBars = 5

// Signal is the cellular signal at the last upload. Both parts are nil before the first one (decision 14).
type Signal struct {
	RSSI *int32 // dBm
	Bars *int16 // 0 to 5
}

// Device is a device as its team sees it (spec 2, Device). It stays the same device while its hardware unit is
// replaced.
type Device struct {
	ID               uuid.UUID
	HardwareID       string // unit that is installed, or else the last one that was
	DisplayName      *string
	FirmwareVersion  *string
	Metadata         map[string]string
	LastSeenAt       *time.Time // nil before the first upload
	Signal           Signal
	ActiveAssignment *Assignment // nil without an open assignment
	RetiredAt        *time.Time  // nil for a device that is in use
}

// SameDescription reports whether a device has the name and the tags of another one.
func (d *Device) SameDescription(other *Device) bool {
	named := d.DisplayName != nil && other.DisplayName != nil && *d.DisplayName == *other.DisplayName
	return (named || d.DisplayName == other.DisplayName) && maps.Equal(d.Metadata, other.Metadata)
}

// NamedDevice is a device with its display name, as the columns of an export need it.
type NamedDevice struct {
	ID          uuid.UUID
	DisplayName *string
	Retired     bool
}

// CurrentDevice is an item of the live snapshot (decision 17).
type CurrentDevice struct {
	Device
	Latest  *Reading // nil without a reading
	Last24h Stats
}

// Status is how recent the data of a device is (spec 3, Device status).
type Status string

// The statuses of spec 3.
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

// StatusAges returns the ages of last_seen_at at which the status changes: a device is online below the first and
// offline above the second.
func StatusAges() (stale, offline time.Duration) { return staleFrom, offlineAfter }

// StatusAt returns the status at now. lastSeen is nil for a device that never sent an upload.
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

// StatusUntil returns when the status of now changes if no upload arrives: Forever for a device that is offline.
func StatusUntil(now time.Time, lastSeen *time.Time) time.Time {
	switch StatusAt(now, lastSeen) {
	case Online:
		return lastSeen.Add(staleFrom)
	case Stale:
		return lastSeen.Add(offlineAfter + 1) // At exactly 24 hours the status is still stale.
	case Offline:
	}
	return Forever
}

// DeviceQuery selects a page of a team's devices, by device_id ascending (decision 10).
type DeviceQuery struct {
	Metadata map[string]string // a device must have all of these tags (spec 4, GET /devices)
	After    *uuid.UUID        // last id of the previous page; nil on the first page
	Limit    int
	// MaxTagBytes ends the read of a page after the device that brings the TagBytes of all devices over it, but not after
	// the first device. 0 means no limit.
	MaxTagBytes int
}

// TagBytes returns the length of all keys and values of the tags, which is less than their length as JSON.
func (d *Device) TagBytes() int {
	n := 0
	for key, value := range d.Metadata {
		n += len(key) + len(value)
	}
	return n
}

// DevicePatch is a change of a device. What is not set stays the same.
type DevicePatch struct {
	SetDisplayName bool
	DisplayName    *string // nil clears it
	Metadata       MetadataPatch
}

// MetadataPatch is a change of the tags of a device, as a JSON merge patch (RFC 7396, decision 21).
type MetadataPatch struct {
	Clear  bool               // metadata is null
	Values map[string]*string // nil removes the key
}

// Apply returns the tags after the patch. It does not change its argument.
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

// Installation is an interval [From, To) in which a hardware unit is installed in a device (decision 40). A unit is in
// one device at a time, and a device has one unit at a time.
type Installation struct {
	HardwareID string
	DeviceID   uuid.UUID
	TeamID     uuid.UUID
	From, To   *time.Time // nil is unbounded
	Samples    SampleRule // of the device now
}

// Sampling is what the reading of a bucket is (A13.1).
type Sampling string

// The samplings of devices.
const (
	SamplingWhole Sampling = "whole" // the last measurement of the bucket, as a whole (decision 37)
	SamplingMean  Sampling = "mean"  // the mean of all measurements of the bucket, per metric
)

// SampleRule is how a measurement is stored.
type SampleRule uint8

// The rules of samples (A13.2, A13.4).
const (
	NoSample    SampleRule = iota // it is merged into the reading of its bucket
	SampleIfAny                   // it is a sample if its bucket has samples, and otherwise merged
	Sample                        // it is a sample
)

// Covers reports whether the unit was installed in the device at a time.
func (i *Installation) Covers(at time.Time) bool {
	return (i.From == nil || !at.Before(*i.From)) && (i.To == nil || at.Before(*i.To))
}

// UnitHistory is an installation of a unit, with the device.
type UnitHistory struct {
	DeviceID   uuid.UUID
	DeviceName *string
	LastSeenAt *time.Time // of the device
	From, To   *time.Time // nil is unbounded
}

// NewDevice is a device to be created.
type NewDevice struct {
	TeamID      uuid.UUID
	HardwareID  string // or the alias of the unit (A12.2)
	DisplayName *string
	Metadata    map[string]string
	Sampling    Sampling // empty: whole
	// InstalledAt is when the unit was installed. nil means the default: unbounded for a unit that was never installed
	// before, so that readings it has buffered are stored, and otherwise now.
	InstalledAt *time.Time
}

// DeviceUpdater changes devices.
type DeviceUpdater interface {
	// UpdateDevice applies a patch to a device of a team and returns the changed device.
	UpdateDevice(ctx context.Context, teamID, deviceID uuid.UUID, patch DevicePatch) (Device, error)
}

// HardwareConflict is why a hardware unit cannot be installed or removed.
type HardwareConflict string

// The conflicts of hardware units. The comments tell which fields of a HardwareConflictError are set.
const (
	HardwareInstalled      HardwareConflict = "installed"       // DeviceID has the unit, in the interval From to To
	HardwareJustInstalled  HardwareConflict = "just installed"  // a concurrent command installed the unit elsewhere
	HardwareAlreadyThere   HardwareConflict = "already there"   // the device already has the unit
	HardwareReplacedLater  HardwareConflict = "replaced later"  // the device had another unit at that time or later
	HardwareInstalledLater HardwareConflict = "installed later" // the unit was installed From, not before the removal
	HardwareNotInstalled   HardwareConflict = "not installed"   // the device has no unit
)

// HardwareConflictError means that a hardware unit cannot be installed in or removed from a device.
type HardwareConflictError struct {
	Installation

	Conflict HardwareConflict
}

func (e *HardwareConflictError) Error() string {
	return fmt.Sprintf("hardware unit %q, device %s: %s", e.HardwareID, e.DeviceID, e.Conflict)
}
