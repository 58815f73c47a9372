package source

import (
	"fmt"
	"strings"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// Message is a message of a source with what its mapping found in it.
type Message struct {
	Units   []*Unit // each once, in the order of the message
	Ignored int     // elements that the mapping ignores
	// NotMapped says why elements of the message are not mapped; nil if all are. Payload is these elements (A10.8).
	NotMapped *upload.Refusal
	Payload   []byte

	result *mapping.Result
}

// maxDetails is how many different causes the detail of a reject names.
const maxDetails = 3

// Read reads a message with the mapping of its source. The text must not change while the message is used.
func Read(m *mapping.Mapping, text []byte, arrival *roomsensor.Arrival) *Message {
	precision, _ := mapping.ParsePrecision(arrival.Precision) // A receiver checked it.
	found := m.Apply(mapping.Message{Text: text, ArrivedAt: arrival.At, Precision: precision})
	message := &Message{Ignored: found.Ignored, result: found}
	units := map[string]*Unit{}
	for i := range found.Heartbeats {
		message.unit(units, &found.Heartbeats[i])
	}
	for i := range found.Measurements {
		measured := &found.Measurements[i]
		u := message.unit(units, &measured.Heartbeat)
		u.readings = append(u.readings, measured.Reading)
		u.Elements = append(u.Elements, measured.Element)
	}
	message.explain(found.Problems)
	return message
}

// unit returns the unit of an element, and remembers the last signal and firmware version that it has.
func (m *Message) unit(units map[string]*Unit, h *mapping.Heartbeat) *Unit {
	u := units[h.Unit]
	if u == nil {
		u = &Unit{Name: h.Unit, message: m}
		units[h.Unit] = u
		m.Units = append(m.Units, u)
	}
	u.whole = u.whole || h.Element == mapping.WholeMessage
	if h.Signal != nil {
		u.signal = h.Signal
	}
	if h.Firmware != nil {
		u.firmware = h.Firmware
	}
	return u
}

// Part returns the text of the message with some of its elements, or all of it for none.
func (m *Message) Part(elements []int) []byte {
	if len(elements) == 0 {
		return m.result.Part(mapping.WholeMessage)
	}
	return m.result.Part(elements...)
}

// explain makes one reject of the elements that are not mapped.
func (m *Message) explain(problems []mapping.Problem) {
	if len(problems) == 0 {
		return
	}
	var details []string
	named, elements := 0, make([]int, len(problems))
	known := map[string]bool{}
	for i, p := range problems {
		elements[i] = p.Element
		if !known[p.Detail] && len(details) < maxDetails {
			known[p.Detail] = true
			details = append(details, p.Detail)
		}
		if known[p.Detail] {
			named++
		}
	}
	detail := strings.Join(details, " ")
	if len(problems) > 1 {
		detail += fmt.Sprintf(" This concerns %d parts of the message.", named)
	}
	if others := len(problems) - named; others > 0 {
		detail += fmt.Sprintf(" %d more have other causes.", others)
	}
	m.NotMapped = &upload.Refusal{Reason: roomsensor.ReasonNotMapped, Detail: detail}
	m.Payload = m.Part(elements)
}
