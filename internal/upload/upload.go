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

// Upload is one upload as far as its text alone tells.
type Upload struct {
	HardwareID string
	Signal     *roomsensor.Signal // nil where it carries none
	Firmware   *string            // likewise
	BadFields  []string           // names of the fields that are malformed and left out
	Readings   []Reading

	text  []byte
	array span
}

// Reading is one element of the array readings.
type Reading struct {
	roomsensor.Measurement // means nothing where there is a Problem

	// Problem is ReasonMeasuredAtInvalid, ReasonMeasuredAtOutOfRange or empty.
	Problem roomsensor.Reason
	// BadValues has bit i set where metric i is outside its range or no
	// number; it is absent from the measurement then.
	BadValues uint8

	raw span
}

// Refusal says why a whole upload is a reject (decision 41).
type Refusal struct {
	Reason roomsensor.Reason
	Detail string // a sentence for an operator
}

// Parse judges an upload that came for a unit and arrived at an instant, by
// the rules of decision 41 that need no table. The text must not change while
// the upload is used.
func Parse(text []byte, unit string, arrived time.Time) (*Upload, *Refusal) {
	p := parser{latest: arrived.Add(roomsensor.MeasuredAhead)}
	d, bad := scan(text, p.reading)
	if bad != nil {
		return nil, &Refusal{roomsensor.ReasonNotParsable, bad.text}
	}
	u := &Upload{Readings: p.readings, text: text, array: d.readings}
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
		return &Refusal{roomsensor.ReasonNotParsable, "hardware_id is missing or is no text."}
	case d.readings.missing():
		return &Refusal{roomsensor.ReasonNotParsable, "readings is missing or is no array."}
	case id != unit:
		return &Refusal{
			roomsensor.ReasonHardwareIDMismatch,
			fmt.Sprintf("hardware_id is %.100q, but the upload came under the name of %.100q.", id, unit),
		}
	case d.count > roomsensor.MaxUploadReadings:
		return &Refusal{
			roomsensor.ReasonTooManyReadings,
			fmt.Sprintf("It has %d readings; at most %d are allowed.", d.count, roomsensor.MaxUploadReadings),
		}
	}
	u.HardwareID = id
	return nil
}

// readFields reads what an upload may say beside its readings. A field that is
// null says nothing, like one that is missing.
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
		if ok = ok && isFirmware(text); ok {
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

// Part is the text of the upload with only some of its readings, each as it
// was sent: what a reject keeps.
func (u *Upload) Part(readings []int) []byte {
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

const maxFirmware = 64 // characters

// isFirmware reports whether text can be a dotted version.
func isFirmware(text string) bool {
	if text == "" || len(text) > maxFirmware {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '+', c == '-':
		default:
			return false
		}
	}
	return true
}

const maxBars = 5 // decision 14

// parseSignal reads a signal; either part may be missing or null, and one
// without any part says nothing. A strength is any 32-bit number of dBm but
// the least, which the tables keep for "none": weak is plausible, and a modem
// that reports nonsense should not cost the upload.
func parseSignal(raw []byte) (*roomsensor.Signal, bool) {
	var parts struct {
		RSSI jsontext.Value `json:"rssi_dbm"`
		Bars jsontext.Value `json:"bars"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, false
	}
	rssi, hasRSSI, rssiOK := whole(parts.RSSI, math.MinInt32+1, math.MaxInt32)
	bars, hasBars, barsOK := whole(parts.Bars, 0, maxBars)
	if !rssiOK || !barsOK || (!hasRSSI && !hasBars) {
		return nil, rssiOK && barsOK
	}
	signal := &roomsensor.Signal{}
	if hasRSSI {
		dbm := int32(rssi)
		signal.RSSI = &dbm
	}
	if hasBars {
		shown := int16(bars)
		signal.Bars = &shown
	}
	return signal, true
}

// whole reads a whole number within bounds; a missing or null one is not there.
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
