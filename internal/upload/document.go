package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
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

// malformed says why a text is no upload at all, and where it shows.
type malformed struct {
	text string // a sentence for whoever made the text
	at   int    // bytes before it
}

func (m *malformed) Error() string { return m.text }

// scan reads a whole text and calls each at every element of the array
// readings, which must consume it. A text that names a member twice, is not
// UTF-8 or goes on after its end is no JSON object.
func scan(text []byte, each func(*document) error) (*document, *malformed) {
	d := &document{dec: jsontext.NewDecoder(bytes.NewBuffer(text[:len(text):len(text)])), text: text}
	if err := d.object(each); err != nil {
		return nil, explain(err, len(text))
	}
	if more := bytes.TrimLeft(text[d.offset():], whiteSpace); len(more) > 0 {
		return nil, malformedAt("There is more after the end of the JSON object", len(text)-len(more))
	}
	return d, nil
}

func (d *document) object(each func(*document) error) error {
	if d.dec.PeekKind() != '{' {
		if err := d.dec.SkipValue(); err != nil {
			return err
		}
		return &malformed{text: "It is not a JSON object."}
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

// explain puts an error of the tokenizer into words.
func explain(err error, end int) *malformed {
	var known *malformed
	if errors.As(err, &known) {
		return known
	}
	var syntax *jsontext.SyntacticError
	switch at := 0; {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &malformed{"It ends before its JSON object does.", end}
	case !errors.As(err, &syntax): // Nothing but white space.
		return &malformed{text: "It is empty."}
	default:
		at = int(syntax.ByteOffset)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return malformedAt(fmt.Sprintf("It names the member %.100q twice", syntax.JSONPointer.LastToken()), at)
		}
		return malformedAt("It is no valid JSON", at)
	}
}

func malformedAt(what string, at int) *malformed {
	return &malformed{fmt.Sprintf("%s, at byte %d.", what, at+1), at}
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
