package world

import "time"

// plan is what may fail in a run, drawn from its seed. Probabilities are in percent.
type plan struct {
	workers, receivers int
	span               time.Duration // in which requests are due and faults begin
	ackWait            time.Duration
	maxBytes           uint64 // of the stream

	reorder, slow         float64
	loseAck, repeatAck    float64 // of a worker
	losePublish           float64 // the message
	loseConfirmation      float64 // of the stream
	refusePublish         float64
	deliverTwice          float64
	failWrite, failCommit float64 // before the commit, and after it
	hangWrite, hangCommit float64 // the same, without an answer
	refuseWrite           float64 // for now
	crashWrite            float64 // of the worker, just before or just after its commit
	abort                 float64 // of a client, before the response
	poison                float64 // uploads with a reading that the database never stores

	kills, pauses, stops, outages, losses, jumps int
}

// newPlan draws each fault with a probability of one half, so that many runs have a few faults only.
func (w *World) newPlan() plan {
	some := func(most float64) float64 {
		if w.happens(50) {
			return 0
		}
		return most * w.rng.Float64()
	}
	times := func(most int) int { return int(some(float64(most) + 1)) }
	pick := func(list ...time.Duration) time.Duration { return list[w.rng.IntN(len(list))] }
	p := plan{
		workers: 1 + w.rng.IntN(3), receivers: 1 + w.rng.IntN(2),
		span:    pick(time.Second, 5*time.Second, 20*time.Second),
		ackWait: pick(2*time.Second, 2*time.Second, 5*time.Second, time.Minute), maxBytes: 1 << 30,
		reorder: some(50), slow: some(10), loseAck: some(30), repeatAck: some(20),
		losePublish: some(10), loseConfirmation: some(20), refusePublish: some(10), deliverTwice: some(10),
		failWrite: some(30), failCommit: some(30), hangWrite: some(5), hangCommit: some(5), refuseWrite: some(20),
		crashWrite: some(10), abort: some(10), poison: some(15),
		kills: times(4), pauses: times(2), stops: times(3), outages: times(2), losses: times(1), jumps: times(3),
	}
	if w.happens(30) {
		p.maxBytes = (30 + w.rng.Uint64N(20)) * messageBytes
	}
	return p
}

// calm ends all faults but the delays.
func (p *plan) calm() {
	*p = plan{workers: p.workers, receivers: p.receivers, span: p.span, ackWait: p.ackWait, maxBytes: p.maxBytes}
}

// scheduleFaults lets processes and servers fail within the span.
func (w *World) scheduleFaults() {
	each := func(n int, label string, do func()) {
		for range n {
			w.after(w.between(0, w.plan.span), label, func() {
				if w.calmed {
					return
				}
				do()
			})
		}
	}
	each(w.plan.kills, "kill", func() { w.kill(w.anyProcess()) })
	each(w.plan.stops, "stop", func() { w.stop(w.anyProcess()) })
	each(w.plan.pauses, "pause", func() {
		p := w.anyProcess()
		p.paused = time.Now().Add(w.between(time.Second, 90*time.Second))
		w.record("pause %s", p.name)
	})
	each(w.plan.outages, "outage", func() {
		w.tables.setDown(true)
		w.after(w.between(10*time.Millisecond, 20*time.Second), "outage ends", func() { w.tables.setDown(false) })
	})
	each(w.plan.losses, "stream gone", func() {
		w.stream.setGone(true)
		w.after(w.between(10*time.Millisecond, 20*time.Second), "stream back", func() { w.stream.setGone(false) })
	})
	each(w.plan.jumps, "clock jump", func() {
		jump := w.between(-time.Hour, time.Hour)
		if w.happens(30) {
			jump *= 24 * 20
		}
		if w.happens(50) {
			w.stream.jump += jump
		} else {
			w.tables.jump += jump
		}
	})
}
