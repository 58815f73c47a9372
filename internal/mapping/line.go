package mapping

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Precision is the unit of times in line protocol. The zero Precision is nanoseconds.
type Precision int

// The precisions, in groups of three decimal digits.
const (
	Nanoseconds Precision = iota
	Microseconds
	Milliseconds
	Seconds
)

// ParsePrecision parses the parameter precision of a writer of line protocol: ns or n, us or u, ms, s. Empty is ns.
func ParsePrecision(text string) (Precision, bool) {
	switch text {
	case "", "ns", "n":
		return Nanoseconds, true
	case "us", "u":
		return Microseconds, true
	case "ms":
		return Milliseconds, true
	case "s":
		return Seconds, true
	}
	return 0, false
}

// maxPairs is the limit of tags and fields of a line. Each is compared with the others, to find repeated ones.
const maxPairs = 256

// readLines reads a message of line protocol, in which each line is an element (format influx). Empty lines and
// comments are not elements. A line that cannot be parsed is a problem with its number and text; the others count.
func (e *evaluation) readLines(text []byte) {
	e.result.list = span{0, uint32(len(text))} //nolint:gosec // See maxMessage.
	number, from := 0, 0
	for rest := range bytes.Lines(text) {
		number++
		line := bytes.TrimSpace(rest)
		begin := from + bytes.Index(rest, line)
		from += len(rest)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		index := len(e.result.elements)
		if index == maxElements {
			e.refuse(fmt.Sprintf("The message has more than %d lines with measurements.", maxElements))
			return
		}
		e.result.elements = append(e.result.elements,
			span{uint32(begin), uint32(begin + len(line))}) //nolint:gosec // See maxMessage.
		if err := e.doc.readLine(line, e.message.Precision); err != nil {
			e.addProblem(index, fmt.Sprintf("Line %d cannot be parsed, %v: %.200q", number, err, line))
			continue
		}
		e.element(index, 0)
	}
}

// readLine parses a line into the element {"measurement","tags":{},"fields":{},"timestamp"}. The timestamp is in
// nanoseconds, whatever its precision; it is missing if the line has none. An error says what is wrong.
func (d *document) readLine(line []byte, precision Precision) error {
	if !utf8.Valid(line) {
		return lineError("it is not valid UTF-8")
	}
	d.text, d.nodes = d.text[:0], d.nodes[:0]
	p := lineParser{document: d, rest: line}
	return p.element(precision)
}

// lineParser reads a line from left to right. It writes names and values without their escapes to the document.
type lineParser struct {
	*document

	rest []byte
}

// lineError says why a line cannot be parsed.
type lineError string

func (e lineError) Error() string { return string(e) }

func (p *lineParser) element(precision Precision) error {
	element := p.add(node{kind: '{'})
	name := p.write("measurement")
	measurement := p.word(", ", ", ")
	if measurement.from == measurement.to {
		return lineError("the measurement is missing")
	}
	p.add(node{name: name, value: measurement, kind: '"'})
	tags := p.add(node{name: p.write("tags"), kind: '{'})
	for p.accept(',') {
		if err := p.pair(tags, p.tag); err != nil {
			return err
		}
	}
	p.complete(tags)
	if !p.blank() {
		return lineError("the fields are missing")
	}
	fields := p.add(node{name: p.write("fields"), kind: '{'})
	for more := true; more; more = p.accept(',') {
		if err := p.pair(fields, p.field); err != nil {
			return err
		}
	}
	p.complete(fields)
	err := p.timestamp(precision)
	p.complete(element)
	return err
}

// complete ends an object.
func (p *lineParser) complete(object int32) {
	p.nodes[object].end = int32(len(p.nodes)) //nolint:gosec // See maxMessage.
}

func (p *lineParser) write(text string) span {
	from := len(p.text)
	p.text = append(p.text, text...)
	return span{uint32(from), uint32(len(p.text))} //nolint:gosec // See maxMessage.
}

// word reads up to one of some characters. A backslash escapes the characters of escapes, and is itself before others.
func (p *lineParser) word(stops, escapes string) span {
	from, i := len(p.text), 0
	for ; i < len(p.rest) && strings.IndexByte(stops, p.rest[i]) < 0; i++ {
		if p.rest[i] == '\\' && i+1 < len(p.rest) && strings.IndexByte(escapes, p.rest[i+1]) >= 0 {
			i++
		}
		p.text = append(p.text, p.rest[i])
	}
	p.rest = p.rest[i:]
	return span{uint32(from), uint32(len(p.text))} //nolint:gosec // See maxMessage.
}

// accept reads a character if it is the next one.
func (p *lineParser) accept(c byte) bool {
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// blank reads blanks, of which there must be at least one.
func (p *lineParser) blank() bool {
	rest := bytes.TrimLeft(p.rest, " ")
	found := len(rest) < len(p.rest)
	p.rest = rest
	return found
}

// pair reads name=value into an object.
func (p *lineParser) pair(object int32, value func(name span) (node, error)) error {
	name := p.word(",= ", ",= ")
	text := name.of(p.text)
	switch {
	case len(text) == 0:
		return lineError("a tag or field has no name")
	case !p.accept('='):
		return lineError(fmt.Sprintf("the tag or field %.100q has no value", text))
	}
	for at := object + 1; int(at) < len(p.nodes); at++ {
		if bytes.Equal(p.name(at), text) {
			return lineError(fmt.Sprintf("the tag or field %.100q occurs twice", text))
		}
	}
	if p.nodes[object].count++; p.nodes[object].count > maxPairs {
		return lineError(fmt.Sprintf("it has more than %d tags or fields", maxPairs))
	}
	n, err := value(name)
	p.add(n)
	return err
}

func (p *lineParser) tag(name span) (node, error) {
	value := p.word(",= ", ",= ")
	if value.from == value.to {
		return node{}, lineError(fmt.Sprintf("the tag or field %.100q has no value", name.of(p.text)))
	}
	return node{name: name, value: value, kind: '"'}, nil
}

func (p *lineParser) field(name span) (node, error) {
	n := node{name: name, kind: '"'}
	if p.accept('"') {
		n.value = p.word(`"`, `"\`)
		if !p.accept('"') {
			return n, lineError(fmt.Sprintf("the text of the field %.100q has no end", name.of(p.text)))
		}
		return n, nil
	}
	n.value = p.word(", ", "")
	text := n.value.of(p.text)
	if n.kind = booleans[string(text)]; n.kind != 0 {
		return n, nil
	}
	n.kind = '0'
	signed, isSigned := bytes.CutSuffix(text, []byte("i"))
	unsigned, isUnsigned := bytes.CutSuffix(text, []byte("u"))
	switch {
	case isSigned && isWhole(signed), isUnsigned && isWhole(unsigned) && unsigned[0] != '-':
		n.value.to--
	case !IsDecimal(text):
		return n, lineError(fmt.Sprintf("the field %.100q is not a number, a text in quotes or a boolean", name.of(p.text)))
	}
	return n, nil
}

// booleans are the kinds of the boolean values of fields.
var booleans = map[string]jsontext.Kind{
	"t": 't', "T": 't', "true": 't', "True": 't', "TRUE": 't',
	"f": 'f', "F": 'f', "false": 'f', "False": 'f', "FALSE": 'f',
}

// timestamp reads the time at the end of the line, if there is one.
func (p *lineParser) timestamp(precision Precision) error {
	if !p.blank() && len(p.rest) > 0 {
		return lineError("a field is followed by something else than a comma or a blank")
	}
	if len(p.rest) == 0 {
		return nil
	}
	unit := int64(1)
	for range precision {
		unit *= 1000
	}
	at, err := strconv.ParseInt(string(p.rest), 10, 64)
	if err != nil || at > math.MaxInt64/unit || at < math.MinInt64/unit {
		return lineError("the time is not a whole number of 64 bits in nanoseconds")
	}
	p.add(node{name: p.write("timestamp"), value: p.write(strconv.FormatInt(at*unit, 10)), kind: '0'})
	return nil
}
