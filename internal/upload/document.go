package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/roomsensor"
)

// whiteSpace is the white space of JSON.
const whiteSpace = " \t\r\n"

// span is a part of the text of an upload, in bytes: [from, to).
type span struct{ from, to int }

func (s span) of(text []byte) []byte { return text[s.from:s.to] }
func (s span) missing() bool         { return s.to == 0 }

// document is the outer object of an upload, with the positions of its fields.
type document struct {
	dec  *jsontext.Decoder
	text []byte

	hardwareID, sentAt, firmware, signal span
	readings                             span // the whole array
	count                                int  // of its elements
	ignored                              Ignored
}

// scan reads a whole text and calls each for every element of the array readings, which must consume it. A text with a
// duplicate member, invalid UTF-8 or more text after its end is malformed.
func scan(text []byte, each func(*document) *malformed) (*document, *malformed) {
	d := &document{text: text}
	t := tokenizers.Get().(*tokenizer) //nolint:forcetypeassert // Of tokenizers.
	d.dec = t.begin(text)
	if len(text) <= maxPooledText {
		defer tokenizers.Put(t)
	}
	if bad := d.object(each); bad != nil {
		return nil, bad
	}
	if more := bytes.TrimLeft(text[d.offset():], whiteSpace); len(more) > 0 {
		return nil, malformedAt("There is text after the end of the JSON object", len(text)-len(more))
	}
	return d, nil
}

// maxPooledText is the size in bytes of texts whose tokenizer is used again. It keeps the names of the members of an
// object, which may take as much memory as the text, and its last text.
const maxPooledText = 16 << 10

// tokenizers holds the tokenizers that are not in use. To make one costs more than to read a small upload.
var tokenizers = sync.Pool{New: func() any { return &tokenizer{} }}

// tokenizer reads the tokens of one text after the other.
type tokenizer struct {
	dec  jsontext.Decoder
	text bytes.Buffer
}

// begin returns the decoder at the beginning of a text.
func (t *tokenizer) begin(text []byte) *jsontext.Decoder {
	t.text = *bytes.NewBuffer(slices.Clip(text))
	t.dec.Reset(&t.text)
	return &t.dec
}

func (d *document) object(each func(*document) *malformed) *malformed {
	switch d.dec.PeekKind() {
	case '{':
	case '[':
		return &malformed{text: "The upload is an array. Send one JSON object per line (JSON Lines), not an array."}
	default:
		if bad := d.skip(); bad != nil {
			return bad
		}
		return &malformed{text: "The upload is not a JSON object."}
	}
	return d.members(func(name []byte) *malformed {
		switch string(name) {
		case "hardware_id":
			return d.note(&d.hardwareID)
		case "sent_at":
			return d.note(&d.sentAt)
		case "firmware_version":
			return d.note(&d.firmware)
		case "signal":
			return d.noteSignal()
		case "readings":
			return d.elements(each)
		}
		return d.ignore(name)
	})
}

// ignore skips the value of an unknown member.
func (d *document) ignore(name []byte) *malformed {
	d.ignored.add(name, 1)
	return d.skip()
}

// skipMembers skips a value. If it is an object, it counts the members that are not known.
func (d *document) skipMembers(known func(name []byte) bool) *malformed {
	if d.dec.PeekKind() != '{' {
		return d.skip()
	}
	return d.members(func(name []byte) *malformed {
		if known(name) {
			return d.skip()
		}
		return d.ignore(name)
	})
}

// skipReading skips a reading and counts its unknown members.
func (d *document) skipReading() *malformed {
	return d.skipMembers(func(name []byte) bool {
		_, isMetric := roomsensor.MetricNamed(string(name))
		return isMetric || string(name) == measuredAt
	})
}

// members reads an object and calls member after every name, which must consume the value.
func (d *document) members(member func(name []byte) *malformed) *malformed {
	if bad := d.token(); bad != nil {
		return bad
	}
	for d.dec.PeekKind() == '"' {
		raw, bad := d.value()
		if bad != nil {
			return bad
		}
		if bad := member(unquote(raw)); bad != nil {
			return bad
		}
	}
	return d.token()
}

// elements reads the array readings. It skips any other value, and readings stays missing.
func (d *document) elements(each func(*document) *malformed) *malformed {
	if d.dec.PeekKind() != '[' {
		return d.skip()
	}
	at := d.next()
	if bad := d.token(); bad != nil {
		return bad
	}
	for kind := d.dec.PeekKind(); kind != ']' && kind != 0; kind = d.dec.PeekKind() {
		if bad := each(d); bad != nil {
			return bad
		}
		d.count++
	}
	bad := d.token()
	d.readings = span{at, d.offset()}
	return bad
}

// note stores the position of a value and skips it.
func (d *document) note(s *span) *malformed {
	from := d.next()
	bad := d.skip()
	*s = span{from, d.offset()}
	return bad
}

// noteSignal stores the position of the signal and counts its unknown members.
func (d *document) noteSignal() *malformed {
	from := d.next()
	bad := d.skipMembers(func(name []byte) bool { return string(name) == "rssi_dbm" || string(name) == "bars" })
	d.signal = span{from, d.offset()}
	return bad
}

// next returns the position of the next value, after punctuation.
func (d *document) next() int {
	at := d.offset()
	for at < len(d.text) && strings.IndexByte(whiteSpace+",:", d.text[at]) >= 0 {
		at++
	}
	return at
}

func (d *document) offset() int { return int(d.dec.InputOffset()) }

// skip, token and value call the tokenizer and explain its errors.

func (d *document) skip() *malformed { return d.explain(d.dec.SkipValue()) }

func (d *document) token() *malformed {
	_, err := d.dec.ReadToken()
	return d.explain(err)
}

// value reads a value, which is valid until the next one is read.
func (d *document) value() ([]byte, *malformed) {
	raw, err := d.dec.ReadValue()
	return raw, d.explain(err)
}

// unit returns the hardware_id, and false where it is missing or not a string.
func (d *document) unit() (string, bool) {
	if d.hardwareID.missing() {
		return "", false
	}
	return textOf(d.hardwareID.of(d.text))
}

// unquote reads a JSON string that the tokenizer accepted. The result may share its bytes.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // It was valid.
	return text
}

// textOf returns the text of a JSON string, and false for any other value.
func textOf(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return string(unquote(raw)), true
}

// isNull reports whether a raw value is null.
func isNull(raw []byte) bool { return string(raw) == "null" }

// malformed is the reason why a text is not an upload, and its position.
type malformed struct {
	text string // a sentence for the sender
	at   int    // bytes before the error
}

func malformedAt(what string, at int) *malformed {
	return &malformed{fmt.Sprintf("%s, at byte %d.", what, at+1), at}
}

// explain returns an error of the tokenizer as a sentence.
func (d *document) explain(err error) *malformed {
	if err == nil {
		return nil
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &malformed{"The upload ends before its JSON object does.", len(d.text)}
	case !ok: // The tokenizer reached the end before any token.
		return &malformed{text: "The upload is empty."}
	case errors.Is(err, jsontext.ErrDuplicateName):
		twice := fmt.Sprintf("The upload names the member %.100q twice", syntax.JSONPointer.LastToken())
		return malformedAt(twice, int(syntax.ByteOffset))
	}
	return malformedAt("The upload is not valid JSON", int(syntax.ByteOffset))
}
