package simulate

import (
	"errors"
	"fmt"
	"iter"
	"math/big"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// MaxDevices is the largest fleet. What a fleet needs in memory grows with it,
// about 2 KB a device.
const MaxDevices = 1_000_000

// Fleet is a number of devices with hardware ids that count up from the first.
// Equal fleets are equal to the last bit of every reading.
type Fleet struct {
	Seed            uint64
	Devices         int
	FirstHardwareID string // dev: and digits; leading zeros stay
}

// Validate holds the fleet to the form of hardware ids and to MaxDevices. The
// error is a sentence.
func (f Fleet) Validate() error {
	if f.Devices < 1 || f.Devices > MaxDevices {
		return fmt.Errorf("the number of devices must be 1 to %d", MaxDevices)
	}
	if !roomsensor.IsHardwareID(f.FirstHardwareID) {
		return errors.New("the first hardware id must be dev: and 1 to 20 digits, for example dev:900000000000001")
	}
	if last := f.HardwareID(f.Devices - 1); !roomsensor.IsHardwareID(last) {
		return fmt.Errorf("the last hardware id would be %s, but at most 20 digits are allowed: start lower", last)
	}
	return nil
}

// HardwareID is the id of the i-th unit, counted from 0.
func (f Fleet) HardwareID(i int) string {
	digits := strings.TrimPrefix(f.FirstHardwareID, "dev:")
	first, _ := new(big.Int).SetString(digits, 10) // 20 digits may be more than 64 bits.
	return fmt.Sprintf("dev:%0*s", len(digits), first.Add(first, big.NewInt(int64(i))))
}

// Device makes the i-th device, counted from 0.
func (f Fleet) Device(i int) *Device {
	kind := Kinds[i%len(Kinds)]
	seed := mix(f.Seed ^ mix(uint64(i))) //nolint:gosec // i is not negative.
	hardwareID := f.HardwareID(i)
	return &Device{
		HardwareID: hardwareID,
		Kind:       kind,
		fleet:      f.Seed,
		seed:       seed,
		room:       newRoom(kind, newDice(seed, streamRoom)),
		unit:       newUnit(f.Seed, hardwareID),
	}
}

// Device is a sensor in a room.
type Device struct {
	HardwareID string
	Kind       Kind

	fleet, seed uint64
	room        room
	unit        unit
}

// Replaced is the same room, with the same people in it, measured by another
// unit.
func (d *Device) Replaced(hardwareID string) *Device {
	other := *d
	other.HardwareID = hardwareID
	other.unit = newUnit(d.fleet, hardwareID)
	return &other
}

// Measurements yields what the device measured in [from, to), oldest first.
// A measurement does not depend on the window that it is asked for in. Nothing
// is allocated for a reading.
func (d *Device) Measurements(from, to time.Time) iter.Seq[roomsensor.Measurement] {
	return func(yield func(roomsensor.Measurement) bool) {
		w := newWalk(d, from)
		for w.bucket.Before(to) {
			m, ok := w.next()
			if ok && !m.MeasuredAt.Before(from) && m.MeasuredAt.Before(to) && !yield(m) {
				return
			}
		}
	}
}
