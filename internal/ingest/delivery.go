package ingest

import (
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// delivery is one upload as it came out of the queue, or out of a reject that
// is replayed, judged as far as its text alone tells.
type delivery struct {
	arrival roomsensor.Arrival
	unit    string // that the upload came for
	text    []byte
	upload  *upload.Upload  // nil where there is a refusal
	refusal *upload.Refusal // of the whole upload

	msg    jetstream.Msg // nil in a replay
	behind uint64        // messages that waited behind it
	stored bool          // what it gave is committed
}

// judged makes a delivery of a text.
func judged(arrival roomsensor.Arrival, unit string, text []byte) *delivery {
	if text == nil {
		text = []byte{} // An empty message is a reject with an empty payload, not without one.
	}
	d := &delivery{arrival: arrival, unit: unit, text: text}
	d.upload, d.refusal = upload.Parse(text, unit, arrival.At)
	return d
}

// received makes a delivery of a message of the queue.
func received(msg jetstream.Msg) (*delivery, error) {
	about, err := queue.Describe(msg)
	if err != nil {
		return nil, err
	}
	d := judged(about.Arrival, about.HardwareID, msg.Data())
	d.msg, d.behind = msg, about.Behind
	if about.TeamUnclear {
		d.upload, d.refusal = nil, &upload.Refusal{
			Reason: roomsensor.ReasonNotParsable,
			Detail: "The header " + queue.TeamHeader + " of the message holds no id of a team.",
		}
	}
	return d, nil
}

// readings is how many readings the delivery brings.
func (d *delivery) readings() int {
	if d.upload == nil {
		return 0
	}
	return len(d.upload.Readings)
}

// hardwareID is what a reject says of the unit; nil where no table could hold it.
func (d *delivery) hardwareID() *string {
	if d.unit == "" || !roomsensor.IsPlain(d.unit) {
		return nil
	}
	return &d.unit
}

// unitsOf lists the units that some deliveries need to know more of.
func unitsOf(deliveries []*delivery) []string {
	known := make(map[string]bool, len(deliveries))
	var units []string
	for _, d := range deliveries {
		if id := d.hardwareID(); d.upload != nil && id != nil && !known[*id] {
			known[*id] = true
			units = append(units, *id)
		}
	}
	return units
}
