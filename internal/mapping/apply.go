package mapping

import (
	"bytes"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const (
	// maxElements is the limit of measurements in a message. It bounds the rows of one transaction.
	maxElements = 50_000
	// maxMessage is the limit of a message in bytes. One that a topic was added to is larger than an upload.
	maxMessage = 8 * roomsensor.MaxUploadBytes
)

// Message is what a sender sent.
type Message struct {
	Text      []byte    // must not change while the result is used
	ArrivedAt time.Time // when the queue stored it
	Precision Precision // of times in line protocol; otherwise unused
}

// Result is what a mapping finds in a message. Every element of the message is a measurement, has a problem, or is
// ignored.
type Result struct {
	Measurements []Measurement
	Problems     []Problem
	// Heartbeats are the signals and firmware versions of elements without a measurement: of ignored ones, and of a
	// message whose list is empty.
	Heartbeats []Heartbeat
	Ignored    int // elements

	text     []byte
	lines    bool
	list     span   // of the elements; empty if the message is the element
	elements []span // as they were written
}

// Heartbeat is what an element says about its unit, whatever becomes of the measurement.
type Heartbeat struct {
	Element  int // position in the message, from 0; WholeMessage if its list is empty
	Unit     string
	Signal   *roomsensor.Signal // nil if there is none
	Firmware *string            // nil if there is none
}

// Measurement is a measurement of a unit. Its time is in UTC and valid, but may be out of range.
type Measurement struct {
	Heartbeat
	upload.Reading
}

// WholeMessage is the element of a problem that concerns the whole message.
const WholeMessage = -1

// Problem is the reason why an element is not mapped (A10.8). Elements with the same cause have the same detail.
type Problem struct {
	Element int    // position in the message, from 0, or WholeMessage
	Detail  string // a sentence that names the path at fault
}

// Apply reads the measurements of a message (A11). It never fails: what the mapping does not fit is in Problems. Time
// and memory are linear in the size of the message, of which at most 8 MB and 50,000 elements are read.
func (m *Mapping) Apply(message Message) *Result {
	e := &evaluation{Mapping: m, message: &message, result: &Result{lines: m.Lines}, doc: borrow()}
	defer e.doc.release(len(message.Text))
	text := bytes.TrimPrefix(message.Text, byteOrderMark)
	e.result.text = text
	switch {
	case len(text) > maxMessage:
		e.refuse(fmt.Sprintf("The message has %d bytes; at most %d are allowed.", len(text), maxMessage))
	case m.Lines:
		e.readLines(text)
	default:
		if bad := e.doc.read(text); bad != nil {
			e.refuse(fmt.Sprintf("The message %s, at byte %d.", bad.text, bad.at+1))
			break
		}
		e.readDocument()
	}
	return e.result
}

// Part returns the text of the message with only some of its elements, each as it was sent. It is the payload of a
// reject: the mapping finds the same measurements in it (A10.10).
func (r *Result) Part(elements ...int) []byte {
	if len(r.elements) == 0 || (len(elements) > 0 && elements[0] == WholeMessage) {
		return r.text
	}
	separator, part := []byte(","), []byte(nil)
	if r.lines {
		separator = []byte("\n")
	}
	part = append(part, r.text[:r.list.from]...)
	for n, i := range elements {
		if n > 0 {
			part = append(part, separator...)
		}
		part = append(part, r.elements[i].of(r.text)...)
	}
	return append(part, r.text[r.list.to:]...)
}

// evaluation is one call of Apply.
type evaluation struct {
	*Mapping

	message  *Message
	doc      *document
	result   *Result
	absolute map[string]int32 // nodes of absolute paths, so that a long message is not searched for every element
}

// refuse makes a problem of the whole message.
func (e *evaluation) refuse(detail string) {
	*e.result = Result{text: e.result.text}
	e.addProblem(WholeMessage, detail)
}

// addProblem adds a problem. A key that was pasted into the message is not repeated (decision 26).
func (e *evaluation) addProblem(element int, detail string) {
	e.result.Problems = append(e.result.Problems, Problem{element, roomsensor.Masked(detail)})
}

// readDocument reads the elements of a JSON message: those of the first list that exists, else the message itself (list
// rule, A11.3). A list that is null does not exist.
func (e *evaluation) readDocument() {
	list := e.first(0, e.each)
	if list == missing {
		e.element(0, 0)
		return
	}
	n := &e.doc.nodes[list]
	switch {
	case n.kind != '[':
		e.refuse("The measurements are missing: no list at " + quoted(e.each) + ".")
		return
	case n.count > maxElements:
		e.refuse(fmt.Sprintf("The message has %d measurements; at most %d are allowed.", n.count, maxElements))
		return
	case n.count == 0: // The unit was heard of, also without a signal (decision 39 d).
		if unit, _ := e.unitOf(0); unit == "" {
			e.result.Ignored++
		} else {
			e.result.Heartbeats = []Heartbeat{{WholeMessage, unit, e.signalOf(0), e.firmwareOf(0)}}
		}
		return
	}
	e.absolute = map[string]int32{}
	e.result.list = span{n.value.from + 1, n.value.to - 1}
	e.result.elements = make([]span, 0, n.count)
	for at := range e.doc.children(list) {
		e.result.elements = append(e.result.elements, e.doc.written(at))
		e.element(len(e.result.elements)-1, at)
	}
}

// find returns the value at a path, or missing. The message is node 0.
func (e *evaluation) find(element int32, p *path) int32 {
	if !p.absolute {
		return e.doc.find(element, p.steps)
	}
	if e.absolute == nil {
		return e.doc.find(0, p.steps)
	}
	at, known := e.absolute[p.text]
	if !known {
		at = e.doc.find(0, p.steps)
		e.absolute[p.text] = at
	}
	return at
}

// element reads one element. An element whose only values are outside their ranges is a measurement without values.
func (e *evaluation) element(index int, at int32) {
	v := e.readValues(at)
	empty := v.Mask() == 0 && v.bad == v.notNumbers
	if (empty && v.unusable == nil && e.emptyIgnore) || e.isIgnored(at) {
		e.result.Ignored++
		e.heartbeat(index, at)
		return
	}
	unit, detail := e.unitOf(at)
	measuredAt, badTime := e.timeOf(at)
	switch {
	case detail != "":
	case badTime != "":
		detail = badTime
	case empty && v.unusable != nil:
		detail = fmt.Sprintf("%.100q has no usable value for %s: it must be a number.", v.unusable.text, v.metric)
	case empty:
		detail = e.noMetric
	}
	if detail != "" {
		e.addProblem(index, detail)
		return
	}
	found := Measurement{Heartbeat{index, unit, e.signalOf(at), e.firmwareOf(at)}, upload.Reading{
		Measurement: roomsensor.Measurement{MeasuredAt: measuredAt, Values: v.Values},
		HasMetric:   true, BadValues: v.bad, NotNumbers: v.notNumbers,
	}}
	latest := e.message.ArrivedAt.Add(roomsensor.MeasuredAhead)
	if measuredAt.Before(roomsensor.MeasuredFrom) || measuredAt.After(latest) {
		found.Problem = roomsensor.ReasonMeasuredAtOutOfRange
	}
	e.result.Measurements = append(e.result.Measurements, found)
}

func (e *evaluation) isIgnored(at int32) bool {
	for i := range e.ignore {
		if e.holds(&e.ignore[i], at) {
			return true
		}
	}
	return false
}

// heartbeat keeps the signal and firmware version of an element without a measurement.
func (e *evaluation) heartbeat(index int, at int32) {
	unit, _ := e.unitOf(at)
	h := Heartbeat{index, unit, e.signalOf(at), e.firmwareOf(at)}
	if unit != "" && (h.Signal != nil || h.Firmware != nil) {
		e.result.Heartbeats = append(e.result.Heartbeats, h)
	}
}

// timeOf reads the time of an element: that of its first alternative that is not null, else the arrival (time rule,
// A11.5). detail says what is wrong with it.
func (e *evaluation) timeOf(at int32) (measuredAt time.Time, detail string) {
	for i := range e.at {
		a := &e.at[i]
		found := e.find(at, &a.path)
		if found == missing || e.doc.nodes[found].kind == 'n' {
			continue
		}
		kind := e.doc.nodes[found].kind
		measuredAt, ok := a.format.Parse(e.doc.content(found))
		if !ok || (kind != '"' && kind != '0') {
			return time.Time{}, fmt.Sprintf("%.100q is not a time in the format %s.", a.path.text, a.format.name)
		}
		return measuredAt, ""
	}
	return e.message.ArrivedAt.UTC().Truncate(time.Microsecond), ""
}
