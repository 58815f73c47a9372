package upload

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/roomsensor"
)

// Heading is the result of Check.
type Heading struct {
	HardwareID string
	Readings   int
	Ignored    Ignored
}

// Fault is the reason why a receiver refuses an upload.
type Fault struct {
	Code    roomsensor.Code // validation_failed or request_too_large
	Message string          // a sentence for the sender
	At      int             // bytes of the text before the fault
	// Malformed reports that the text is not a JSON object. Otherwise its content is refused.
	Malformed bool
}

// Check is the quick check of a receiver. It refuses a text that is too large, or that is not a JSON object with a
// valid hardware_id and an array readings.
func Check(text []byte) (Heading, *Fault) {
	if len(text) > roomsensor.MaxUploadBytes {
		return Heading{}, tooLarge("The upload has %d bytes; at most %d are allowed. Send the readings in several uploads.",
			len(text), roomsensor.MaxUploadBytes)
	}
	d, bad := scan(text, (*document).skipReading)
	if bad != nil {
		return Heading{}, &Fault{Code: roomsensor.CodeValidationFailed, Message: bad.text, At: bad.at, Malformed: true}
	}
	unit, ok := d.unit()
	switch {
	case !ok || !roomsensor.IsHardwareID(unit):
		return Heading{}, invalid("hardware_id must be \"dev:\" followed by 1 to 20 digits.")
	case d.readings.missing():
		return Heading{}, invalid("readings is missing or is not an array.")
	case d.count > roomsensor.MaxUploadReadings:
		return Heading{}, tooLarge("The upload has %d readings; at most %d are allowed. Send them in several uploads.",
			d.count, roomsensor.MaxUploadReadings)
	}
	return Heading{unit, d.count, d.ignored}, nil
}

func invalid(message string) *Fault {
	return &Fault{Code: roomsensor.CodeValidationFailed, Message: message}
}

func tooLarge(format string, args ...any) *Fault {
	return &Fault{Code: roomsensor.CodeRequestTooLarge, Message: fmt.Sprintf(format, args...)}
}

// Upload is a parsed upload. Its readings are not assigned to devices.
type Upload struct {
	HardwareID string
	Signal     *roomsensor.Signal // nil if the upload has none
	Firmware   *string            // nil if the upload has none
	BadFields  []string           // names of malformed fields, which are ignored
	Ignored    Ignored            // unknown members
	Readings   []Reading

	text  []byte
	array span
	// part is Part for an upload that was read from a message of a source; otherwise nil.
	part func(readings []int) []byte
}

// OfSource returns what a message of a source says about a unit as an upload. part returns the text of the message with
// some of the readings, or all of it for none.
func OfSource(u Upload, part func(readings []int) []byte) *Upload {
	u.part = part
	return &u
}

// Reading is one element of the array readings.
type Reading struct {
	roomsensor.Measurement // undefined where Problem is set

	// Problem is ReasonMeasuredAtInvalid, ReasonMeasuredAtOutOfRange or empty.
	Problem roomsensor.Reason
	// HasMetric reports whether any of the five metrics is a member, whatever its value (decision 45).
	HasMetric bool
	// BadValues has bit i set where metric i is outside its range or not a number. The measurement has no value for it.
	BadValues uint8
	// NotNumbers has those bits of BadValues whose value is not a JSON number.
	NotNumbers uint8

	raw span
}

// Refusal is the reason why a whole upload is rejected (decision 41).
type Refusal struct {
	Reason roomsensor.Reason
	Detail string // a sentence for the operator
}

// Parse parses an upload that was sent under a unit's name, or under none, and arrived at an instant. It applies the
// rules of decision 41 that need no database. The text must not change while the upload is used.
func Parse(text []byte, unit string, arrived time.Time) (*Upload, *Refusal) {
	p := parser{latest: arrived.Add(roomsensor.MeasuredAhead)}
	d, bad := scan(text, p.reading)
	if bad != nil {
		return nil, &Refusal{roomsensor.ReasonNotParsable, bad.text}
	}
	u := &Upload{Readings: p.readings, Ignored: d.ignored, text: text, array: d.readings}
	if refusal := u.identify(d, unit); refusal != nil {
		return nil, refusal
	}
	u.readFields(d)
	return u, nil
}

func (u *Upload) identify(d *document, unit string) *Refusal {
	id, ok := d.unit()
	switch {
	case !ok:
		return &Refusal{roomsensor.ReasonNotParsable, "hardware_id is missing or is not a string."}
	case d.readings.missing():
		return &Refusal{roomsensor.ReasonNotParsable, "readings is missing or is not an array."}
	case unit != "" && id != unit:
		return &Refusal{
			roomsensor.ReasonHardwareIDMismatch,
			fmt.Sprintf("hardware_id is %.100q, but the upload was sent under the name %.100q.", id, unit),
		}
	case d.count > roomsensor.MaxUploadReadings:
		return &Refusal{
			roomsensor.ReasonTooManyReadings,
			fmt.Sprintf("The upload has %d readings; at most %d are allowed.", d.count, roomsensor.MaxUploadReadings),
		}
	}
	u.HardwareID = id
	return nil
}

// readFields reads the optional fields. A field that is null counts as missing.
func (u *Upload) readFields(d *document) {
	u.readField("sent_at", d.sentAt, func(raw []byte) bool {
		text, ok := textOf(raw)
		if ok {
			_, ok = roomsensor.ParseTime(text)
		}
		return ok
	})
	u.readField("firmware_version", d.firmware, func(raw []byte) bool {
		text, ok := textOf(raw)
		if ok = ok && roomsensor.IsFirmwareVersion(text); ok {
			u.Firmware = &text
		}
		return ok
	})
	u.readField("signal", d.signal, func(raw []byte) (ok bool) {
		u.Signal, ok = parseSignal(raw)
		return ok
	})
}

func (u *Upload) readField(name string, s span, read func(raw []byte) bool) {
	if raw := s.of(u.text); !s.missing() && !isNull(raw) && !read(raw) {
		u.BadFields = append(u.BadFields, name)
	}
}

// Part returns the text of the upload with only some of its readings, each as it was sent. It is the payload of a
// reject.
func (u *Upload) Part(readings []int) []byte {
	if u.part != nil {
		return u.part(readings)
	}
	size := len(u.text) - (u.array.to - u.array.from) + len("[]")
	for _, i := range readings {
		size += u.Readings[i].raw.to - u.Readings[i].raw.from + 1
	}
	part := append(make([]byte, 0, size), u.text[:u.array.from]...)
	part = append(part, '[')
	for n, i := range readings {
		if n > 0 {
			part = append(part, ',')
		}
		part = append(part, u.Readings[i].raw.of(u.text)...)
	}
	part = append(part, ']')
	return append(part, u.text[u.array.to:]...)
}

// parseSignal reads a signal. Either part may be missing or null; without both parts it returns nil. The RSSI is any
// 32-bit number of dBm except for the lowest, which the database uses for "none". Its range is not checked further,
// because an odd value of a modem is not a reason to reject the field.
func parseSignal(raw []byte) (*roomsensor.Signal, bool) {
	var parts struct {
		RSSI jsontext.Value `json:"rssi_dbm"`
		Bars jsontext.Value `json:"bars"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, false
	}
	rssi, hasRSSI, rssiOK := whole(parts.RSSI, math.MinInt32+1, math.MaxInt32)
	bars, hasBars, barsOK := whole(parts.Bars, 0, roomsensor.MaxBars)
	if !rssiOK || !barsOK || (!hasRSSI && !hasBars) {
		return nil, rssiOK && barsOK
	}
	signal := &roomsensor.Signal{}
	if hasRSSI {
		signal.RSSI = new(int32(rssi))
	}
	if hasBars {
		signal.Bars = new(int16(bars))
	}
	return signal, true
}

// whole reads an integer within bounds. there is false for a missing or null value.
func whole(raw jsontext.Value, least, greatest float64) (x float64, there, ok bool) {
	if len(raw) == 0 || isNull(raw) {
		return 0, false, true
	}
	if raw.Kind() != '0' {
		return 0, true, false
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	return x, true, err == nil && x == math.Trunc(x) && least <= x && x <= greatest
}
