package source

import (
	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// Unit is what a message says about a unit.
type Unit struct {
	Name string // as the sender names it: a hardware id or an alias

	// Elements are the elements of the message with the readings of Upload, in their order.
	Elements []int

	message  *Message
	readings []upload.Reading
	signal   *roomsensor.Signal
	firmware *string
	whole    bool // the message has an empty list of measurements
}

// alias returns the alias of the unit in a team; false for a unit whose name is its hardware id (A12.3).
func (u *Unit) alias(teamID uuid.UUID) (roomsensor.TeamAlias, bool) {
	if roomsensor.IsHardwareID(u.Name) {
		return roomsensor.TeamAlias{}, false
	}
	return roomsensor.TeamAlias{TeamID: teamID, Key: roomsensor.NormalizeAlias(u.Name)}, true
}

// Upload returns the readings of the unit as an upload.
func (u *Unit) Upload() *upload.Upload {
	return upload.OfSource(upload.Upload{
		HardwareID: u.Name, Signal: u.signal, Firmware: u.firmware, Readings: u.readings,
	}, u.part)
}

// Heard reports whether the message has no reading of the unit, and nothing that may be rejected: a unit that only
// appears in ignored elements may be unknown (A11.8).
func (u *Unit) Heard() bool { return len(u.readings) == 0 && !u.whole }

// part returns the text of the message with some readings of the unit, or all of it for none.
func (u *Unit) part(readings []int) []byte {
	elements := make([]int, len(readings))
	for i, reading := range readings {
		elements[i] = u.Elements[reading]
	}
	return u.message.Part(elements)
}
