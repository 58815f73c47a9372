package upload

import (
	"fmt"

	"roomsensor/internal/roomsensor"
)

// Heading is what a light look at an upload tells.
type Heading struct {
	HardwareID string
	Readings   int
}

// Fault says why an upload is not even taken in.
type Fault struct {
	Code    roomsensor.Code // validation_failed or request_too_large
	Message string          // a sentence about "it": the caller says what it is
	At      int             // bytes of the text before the fault
}

// Check is the light look of a receiver. It refuses a text that is no JSON
// object with a hardware_id of the right form and an array readings, or that
// is too large.
func Check(text []byte) (Heading, *Fault) {
	if len(text) > roomsensor.MaxUploadBytes {
		return Heading{}, tooLarge("It has %d bytes; at most %d are allowed. Send the readings in several uploads.",
			len(text), roomsensor.MaxUploadBytes)
	}
	d, bad := scan(text, (*document).skip)
	if bad != nil {
		return Heading{}, &Fault{roomsensor.CodeValidationFailed, bad.text, bad.at}
	}
	unit, ok := d.unit()
	switch {
	case !ok || !roomsensor.IsHardwareID(unit):
		return Heading{}, invalid("It has no hardware_id of dev: and 1 to 20 digits.")
	case d.readings.missing():
		return Heading{}, invalid("It has no array readings.")
	case d.count > roomsensor.MaxUploadReadings:
		return Heading{}, tooLarge("It has %d readings; at most %d are allowed. Send them in several uploads.",
			d.count, roomsensor.MaxUploadReadings)
	}
	return Heading{unit, d.count}, nil
}

func invalid(message string) *Fault {
	return &Fault{Code: roomsensor.CodeValidationFailed, Message: message}
}

func tooLarge(format string, args ...any) *Fault {
	return &Fault{Code: roomsensor.CodeRequestTooLarge, Message: fmt.Sprintf(format, args...)}
}
