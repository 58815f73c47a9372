package worker

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const (
	// flushReadings is the size at which a batch is written: a larger one is hardly faster per reading.
	flushReadings = 2_000
	// flushAge limits the wait of a reading for others. It delays the readings of a quiet fleet, and joins the commits of
	// a busy one.
	flushAge = 20 * time.Millisecond
	// capReadings, capBytes and capDeliveries bound a batch that waits for a writer. At any of them the worker stops
	// fetching. The last delivery may exceed them.
	capReadings   = 8_000
	capBytes      = 4 << 20
	capDeliveries = 4_096
	// extendEvery is the interval at which held deliveries are extended: well within the queue's AckWait.
	extendEvery = 15 * time.Second
)

// message settles a delivery with the queue.
type message interface {
	Ack() error
	Nak(delay time.Duration) error
	Extend()
}

// delivery is one upload or message of a source from the queue, or from a reject that is replayed. An upload is parsed,
// but not resolved; a message is neither, because its mapping may change until it is stored (A10.7).
type delivery struct {
	arrival roomsensor.Arrival
	unit    string // hardware id under which the upload was sent, or else that in its text; empty for a message
	text    []byte
	upload  *upload.Upload  // nil where refusal is set, and for a message
	refusal *upload.Refusal // why the whole upload is rejected
	message message         // nil in a replay

	deliveries int // of the message to workers, this one included

	trace trace.SpanContext // that published the upload; not valid if it was not recorded
}

// often reports whether the upload was delivered so often that others must not wait for it.
func (d *delivery) often() bool { return d.deliveries > aloneAfter }

// isMessage reports whether the mapping of a source must read the text.
func (d *delivery) isMessage() bool { return d.arrival.Source != nil && d.refusal == nil }

// sender names the unit of an upload, or the source of a message.
func (d *delivery) sender() string {
	if d.arrival.Source != nil {
		return d.arrival.Source.String()
	}
	return d.unit
}

// parsed returns the delivery of an upload or a message.
func parsed(arrival roomsensor.Arrival, unit string, text []byte) *delivery {
	if text == nil {
		text = []byte{} // The reject of an empty message has an empty payload, not none.
	}
	if arrival.Source != nil {
		return &delivery{arrival: arrival, text: text}
	}
	d := &delivery{arrival: arrival, unit: unit, text: text}
	d.upload, d.refusal = upload.Parse(text, unit, arrival.At)
	if unit == "" && d.upload != nil {
		d.unit = d.upload.HardwareID
	}
	return d
}

// received returns the delivery of a message of the queue.
func received(m *queue.Delivery) *delivery {
	d := parsed(m.Arrival, m.HardwareID, m.Text)
	d.message, d.deliveries, d.trace = m, m.Deliveries, m.Trace
	if m.Invalid != "" {
		d.upload, d.refusal = nil, &upload.Refusal{Reason: roomsensor.ReasonNotParsable, Detail: m.Invalid}
	}
	return d
}

// bytesPerReading estimates the readings of a message that is not read yet.
const bytesPerReading = 256

// readings returns the number of readings of the upload, or an estimate of those of the message.
func (d *delivery) readings() int {
	switch {
	case d.isMessage():
		return 1 + len(d.text)/bytesPerReading
	case d.upload == nil:
		return 0
	}
	return len(d.upload.Readings)
}

// hardwareID returns the unit as the database can store it, or nil where it cannot.
func (d *delivery) hardwareID() *string {
	if d.unit == "" || !roomsensor.IsPlain(d.unit) {
		return nil
	}
	return &d.unit
}

// batch holds the deliveries of one transaction.
type batch struct {
	deliveries []*delivery
	readings   int
	bytes      int
}

func newBatch() *batch { return &batch{} }

func (b *batch) empty() bool { return len(b.deliveries) == 0 }

func (b *batch) add(d *delivery) {
	b.deliveries = append(b.deliveries, d)
	b.readings += d.readings()
	b.bytes += len(d.text)
}

// large reports whether waiting for more deliveries gains nothing.
func (b *batch) large() bool { return b.readings >= flushReadings || b.full() }

// full reports whether the batch accepts no more deliveries.
func (b *batch) full() bool {
	return b.readings >= capReadings || b.bytes >= capBytes || len(b.deliveries) >= capDeliveries
}

func (b *batch) extend() {
	for _, d := range b.deliveries {
		d.message.Extend()
	}
}

// collection is a batch that collect fills with deliveries.
type collection[D any] interface {
	add(d D)
	empty() bool
	large() bool // waiting for more deliveries gains nothing
	full() bool  // it accepts no more deliveries
	extend()
}

// collect groups deliveries into batches until in is closed, then closes out. It sends a batch when it is large or old,
// and the last one at the end. While no writer receives it, the batch grows to its cap; then collect receives nothing
// more.
func collect[D any, B collection[D]](in <-chan D, out chan<- B, newBatch func() B) {
	defer close(out)
	c := collector[D, B]{
		newBatch: newBatch, batch: newBatch(), age: time.NewTimer(flushAge), extend: time.NewTicker(extendEvery),
	}
	defer c.age.Stop()
	defer c.extend.Stop()
	for c.step(in, out) {
	}
	if !c.batch.empty() {
		out <- c.batch
	}
}

type collector[D any, B collection[D]] struct {
	newBatch func() B
	batch    B
	age      *time.Timer
	old      bool
	extend   *time.Ticker
}

// step waits for the next event. It returns false when in is closed.
func (c *collector[D, B]) step(in <-chan D, out chan<- B) bool {
	if c.batch.full() {
		in = nil
	}
	if !c.old && !c.batch.large() {
		out = nil
	}
	select {
	case d, ok := <-in:
		if !ok {
			return false
		}
		if c.batch.empty() {
			c.age.Reset(flushAge)
		}
		c.batch.add(d)
	case out <- c.batch:
		c.batch, c.old = c.newBatch(), false
	case <-c.age.C:
		c.old = !c.batch.empty()
	case <-c.extend.C:
		c.batch.extend()
	}
	return true
}
