package ingest

import (
	"time"
)

const (
	// flushReadings is where a batch is worth a transaction: above it one
	// writes hardly faster.
	flushReadings = 2_000
	// flushAge is how long a reading may wait for company. It is what a quiet
	// fleet waits for its readings to be visible, and what coalesces the
	// commits of a busy one.
	flushAge = 20 * time.Millisecond
	// capReadings, capBytes and capDeliveries bound a batch that waits for a
	// writer; at any of them the worker stops reading from the queue. One
	// upload more may come on top.
	capReadings   = 8_000
	capBytes      = 4 << 20
	capDeliveries = 4_096
	// prolongEvery keeps what is held from going to another worker: well
	// within the queue's AckWait.
	prolongEvery = 15 * time.Second
)

// batch is what one transaction should store.
type batch struct {
	deliveries []*delivery
	readings   int
	bytes      int
}

func (b *batch) add(d *delivery) {
	b.deliveries = append(b.deliveries, d)
	b.readings += d.readings()
	b.bytes += len(d.text)
}

// worth reports whether waiting for more gains nothing.
func (b *batch) worth() bool { return b.readings >= flushReadings || b.full() }

// full reports whether it must take no more.
func (b *batch) full() bool {
	return b.readings >= capReadings || b.bytes >= capBytes || len(b.deliveries) >= capDeliveries
}

// prolong asks the queue for more time for everything in the batch. What it
// does not hear is delivered again, which changes nothing.
func (b *batch) prolong() {
	for _, d := range b.deliveries {
		_ = d.msg.InProgress()
	}
}

// ackAll tells the queue that everything in the batch is done.
func (b *batch) ackAll() {
	for _, d := range b.deliveries {
		_ = d.msg.Ack()
	}
}

// collect makes batches of deliveries until in is closed, then closes out. A
// batch goes out when it is worth it, when it is old, or at the end; while no
// writer takes it, it grows to its cap, and then nothing more is taken in.
func collect(in <-chan *delivery, out chan<- *batch) {
	defer close(out)
	c := collector{batch: &batch{}, age: time.NewTimer(flushAge), prolong: time.NewTicker(prolongEvery)}
	defer c.age.Stop()
	defer c.prolong.Stop()
	for c.step(in, out) {
	}
	if len(c.batch.deliveries) > 0 {
		out <- c.batch
	}
}

type collector struct {
	batch   *batch
	age     *time.Timer
	old     bool
	prolong *time.Ticker
}

// step waits for the next event; false when in is closed.
func (c *collector) step(in <-chan *delivery, out chan<- *batch) bool {
	if c.batch.full() {
		in = nil
	}
	if !c.old && !c.batch.worth() {
		out = nil
	}
	select {
	case d, ok := <-in:
		if !ok {
			return false
		}
		if len(c.batch.deliveries) == 0 {
			c.age.Reset(flushAge)
		}
		c.batch.add(d)
	case out <- c.batch:
		c.batch, c.old = &batch{}, false
	case <-c.age.C:
		c.old = len(c.batch.deliveries) > 0
	case <-c.prolong.C:
		c.batch.prolong()
	}
	return true
}
