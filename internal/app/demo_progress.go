package app

import (
	"iter"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// demoProgress tells how much of the history is sent.
type demoProgress struct {
	demo     *demo
	expected int
	sent     int
	began    time.Time
	told     time.Time
}

// newDemoProgress says what is ahead.
func newDemoProgress(d *demo, from func(i int) time.Time, now time.Time) *demoProgress {
	p := &demoProgress{demo: d, began: time.Now(), told: time.Now()}
	for i := range demoCast {
		if demoCast[i].part != inStock {
			p.expected += max(0, int(demoCast[i].part.until(now).Sub(from(i))/roomsensor.BucketLength)+1)
		}
	}
	d.say("Filling the history up to now: at most %d readings.", p.expected)
	return p
}

// tellEvery is how often it says how far it is.
const tellEvery = 2 * time.Second

// watch counts what passes.
func (p *demoProgress) watch(uploads iter.Seq[*simulate.Upload]) iter.Seq[*simulate.Upload] {
	return func(yield func(*simulate.Upload) bool) {
		for u := range uploads {
			p.sent += len(u.Readings)
			if now := time.Now(); now.Sub(p.told) >= tellEvery {
				p.told = now
				p.demo.say("  %d readings (%d %%)", p.sent, 100*p.sent/max(1, p.expected))
			}
			if !yield(u) {
				return
			}
		}
	}
}

func (p *demoProgress) finish() {
	p.demo.say("Stored %d readings in %s.", p.sent, time.Since(p.began).Round(10*time.Millisecond))
}
