package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/roomsensor"
)

// whiteSpace is what JSON calls so.
const whiteSpace = " \t\r\n"

// span is a part of the text of an upload.
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }
func (s span) missing() bool         { return s.to == 0 }

// document is the outer object of an upload, its fields still in raw text.
type document struct {
	dec  *jsontext.Decoder
	text []byte

	hardwareID, sentAt, firmware, signal span
	readings                             span // the whole array
	count                                int  // of its elements
}

// malformed says why a text is no upload at all, in a sentence for an operator.
type malformed string

func (m malformed) Error() string { return string(m) }

const errNoObject = malformed("It is not a JSON object.")

// scan reads a whole text and calls each at every element of the array
// readings, which must consume it. Its error is malformed: a text that names a
// member twice, is not UTF-8 or goes on after its end is no JSON object.
func scan(text []byte, each func(*document) error) (*document, error) {
	d := &document{dec: jsontext.NewDecoder(bytes.NewBuffer(text[:len(text):len(text)])), text: text}
	if err := d.object(each); err != nil {
		return nil, explain(err)
	}
	if more := bytes.TrimLeft(text[d.offset():], whiteSpace); len(more) > 0 {
		return nil, malformed(fmt.Sprintf("There is more after the end of the JSON object, at byte %d.", len(text)-len(more)+1))
	}
	return d, nil
}

func (d *document) object(each func(*document) error) error {
	if d.dec.PeekKind() != '{' {
		if err := d.dec.SkipValue(); err != nil {
			return err
		}
		return errNoObject
	}
	return d.members(func(name []byte) error {
		switch string(name) {
		case "hardware_id":
			return d.note(&d.hardwareID)
		case "sent_at":
			return d.note(&d.sentAt)
		case "firmware_version":
			return d.note(&d.firmware)
		case "signal":
			return d.note(&d.signal)
		case "readings":
			return d.elements(each)
		}
		return d.dec.SkipValue()
	})
}

// members reads an object and calls member after every name; it must consume
// the value.
func (d *document) members(member func(name []byte) error) error {
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for d.dec.PeekKind() == '"' {
		raw, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		name, err := unquote(raw)
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// elements reads the array readings.
func (d *document) elements(each func(*document) error) error {
	if d.dec.PeekKind() != '[' {
		return d.dec.SkipValue() // Without an array there is nothing to note.
	}
	at := d.next()
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for kind := d.dec.PeekKind(); kind != ']' && kind != 0; kind = d.dec.PeekKind() {
		if err := each(d); err != nil {
			return err
		}
		d.count++
	}
	_, err := d.dec.ReadToken()
	d.readings = span{at, d.offset()}
	return err
}

// note remembers where a value stands and passes over it.
func (d *document) note(s *span) error {
	from := d.next()
	if err := d.dec.SkipValue(); err != nil {
		return err
	}
	*s = span{from, d.offset()}
	return nil
}

// next is where the next value begins; what stands before it is punctuation.
func (d *document) next() int {
	at := d.offset()
	for at < len(d.text) && strings.IndexByte(whiteSpace+",:", d.text[at]) >= 0 {
		at++
	}
	return at
}

func (d *document) offset() int { return int(d.dec.InputOffset()) }

// unit is the hardware_id, and false where it is missing or no text.
func (d *document) unit() (string, bool) {
	if d.hardwareID.missing() {
		return "", false
	}
	return textOf(d.hardwareID.of(d.text))
}

// explain puts a syntax error into words for whoever made the text.
func explain(err error) error {
	var known malformed
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, io.EOF): // Nothing but white space.
		return malformed("It is empty.")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return malformed(fmt.Sprintf("It names the member %.100q twice, at byte %d.",
			syntax.JSONPointer.LastToken(), syntax.ByteOffset+1))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("It ends before its JSON object does.")
	case errors.As(err, &syntax):
		return malformed(fmt.Sprintf("It is no valid JSON at byte %d.", syntax.ByteOffset+1))
	}
	return errNoObject
}

// unquote reads a JSON string; the result may share its bytes.
func unquote(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// textOf reads a raw value that must be a JSON string.
func textOf(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	text, err := unquote(raw)
	return string(text), err == nil
}

// isNull reports whether a field stands for nothing.
func isNull(raw []byte) bool { return string(raw) == "null" }

// Heading is what a look at an upload tells before it is taken.
type Heading struct {
	HardwareID string
	Readings   int
}

// Check is the light look of a receiver. It refuses a text that is no JSON
// object with a hardware_id of the right form and an array readings
// (validation_failed), or that is too large (request_too_large). The error's
// message is a sentence about "it"; the caller says what it is.
func Check(text []byte) (Heading, *roomsensor.Error) {
	if len(text) > roomsensor.MaxUploadBytes {
		return Heading{}, tooLarge("It has %d bytes; an upload has at most %d. Send its readings in several uploads.",
			len(text), roomsensor.MaxUploadBytes)
	}
	d, err := scan(text, func(d *document) error { return d.dec.SkipValue() })
	if err != nil {
		return Heading{}, roomsensor.Invalid("", err.Error())
	}
	unit, ok := d.unit()
	switch {
	case !ok || !roomsensor.IsHardwareID(unit):
		return Heading{}, roomsensor.Invalid("", "It has no hardware_id of dev: and 1 to 20 digits.")
	case d.readings.missing():
		return Heading{}, roomsensor.Invalid("", "It has no array readings.")
	case d.count > roomsensor.MaxUploadReadings:
		return Heading{}, tooLarge("It has %d readings; an upload has at most %d. Send them in several uploads.",
			d.count, roomsensor.MaxUploadReadings)
	}
	return Heading{unit, d.count}, nil
}

func tooLarge(format string, args ...any) *roomsensor.Error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "", fmt.Sprintf(format, args...))
}
