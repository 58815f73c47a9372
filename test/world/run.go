package world

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

// Result is what one seed gave.
type Result struct {
	Seed     uint64
	Trace    uint64 // hash of all steps; the same for the same seed
	Steps    int
	Verdict  ledger.Verdict
	Unfinish string // what did not end after all faults had; empty if everything did
}

// Failed reports whether the run shows a fault of the product.
func (r *Result) Failed() bool { return !r.Verdict.Clean() || r.Unfinish != "" }

func (r *Result) String() string {
	text := fmt.Sprintf("seed %d: %s", r.Seed, r.Verdict.String())
	if r.Unfinish != "" {
		text += ", " + r.Unfinish
	}
	return text + "\n  " + strings.Join(r.Verdict.Examples, "\n  ")
}

const (
	teams    = 2
	fleetOf  = 4 // units, before a swap
	settleIn = time.Hour
)

// run is one run: a world and those who send to it.
type run struct {
	*World

	requests    []*ledger.Request
	ledger      *ledger.Ledger
	credentials []string
	senders     atomic.Int64 // that have not ended
	over        atomic.Bool  // they must end
}

// Run runs a seed in the bubble of the caller, and logs each step unless log is nil.
func Run(seed uint64, log func(format string, args ...any)) (result Result, err error) {
	// The clock of a bubble begins in 2000, and no reading may be from before 2015.
	sleep(time.Until(time.Date(2026, time.June, 1, 9, 30, 0, 0, time.UTC)))
	w := &World{rng: newRNG(seed, 0), began: time.Now(), wake: make(chan struct{}, 1), log: log}
	w.plan = w.newPlan()
	w.stream = newStream(w)
	r := &run{World: w}
	if err := r.populate(seed); err != nil {
		return result, err
	}
	result = Result{Seed: seed}
	result.Unfinish = r.play(&result.Verdict)
	r.end()
	result.Trace, result.Steps = w.trace, w.count
	return result, nil
}

// populate makes the fleet, its requests and the tables.
func (r *run) populate(seed uint64) error {
	t := &tables{
		content: newContent(), w: r.World, installations: map[string][]roomsensor.Installation{},
		never: map[ledger.Key]bool{},
	}
	r.tables = t
	id := func() (id uuid.UUID) {
		binary.BigEndian.PutUint64(id[:], r.rng.Uint64())
		binary.BigEndian.PutUint64(id[8:], r.rng.Uint64())
		return id
	}
	// Clocks jump by less than these 90 days. No reading is newer than the arrival of its upload.
	now := r.began.Add(-90 * 24 * time.Hour)
	swap := now.Add(-10 * 24 * time.Hour).Truncate(roomsensor.BucketLength)
	teamIDs := []uuid.UUID{id(), id()}
	var units []*ledger.Unit
	install := func(u *ledger.Unit) {
		i := roomsensor.Installation{HardwareID: u.HardwareID, DeviceID: u.Device, TeamID: teamIDs[u.Team]}
		if !u.From.IsZero() {
			i.From = &u.From
		}
		if !u.To.IsZero() {
			i.To = &u.To
		}
		t.installations[u.HardwareID] = append(t.installations[u.HardwareID], i)
		units = append(units, u)
	}
	for i := range fleetOf {
		u := &ledger.Unit{HardwareID: fmt.Sprint("dev:", i), Team: i % teams, Device: id()}
		if i == 0 {
			u.To = swap
		}
		install(u)
	}
	install(&ledger.Unit{HardwareID: "dev:swapped", Team: 0, Device: units[0].Device, From: swap})
	for i := range teams {
		public := fmt.Sprint("simulated", i)
		text := roomsensor.FormatKey(roomsensor.IngestKey, public, strings.Repeat("s", 52))
		_, secret, _ := roomsensor.ParseKey(roomsensor.IngestKey, text)
		r.credentials = append(r.credentials, text)
		t.keys = append(t.keys, roomsensor.Key{ID: public, TeamID: teamIDs[i], SecretSHA256: sha256.Sum256([]byte(secret))})
	}
	requests, err := ledger.Make(ledger.Options{
		Seed: seed, Readings: 180, Span: r.plan.span, Now: now, Teams: teams, Units: units, Burst: 30,
	})
	if err != nil {
		return fmt.Errorf("making requests: %w", err)
	}
	r.requests = requests
	r.addPoison()
	r.ledger = ledger.New(requests)
	return nil
}

// addPoison makes the tables refuse a reading of some uploads permanently: it becomes a reject.
func (r *run) addPoison() {
	uses := map[ledger.Key]int{}
	uploads := map[int]*ledger.Upload{}
	var order []*ledger.Upload
	for _, request := range r.requests {
		for _, u := range request.Uploads {
			if uploads[u.ID] != nil {
				continue
			}
			uploads[u.ID] = u
			order = append(order, u)
			for i := range u.Readings {
				uses[ledger.KeyOf(u.Unit.Device, u.Readings[i].Bucket())]++
			}
		}
	}
	for _, u := range order {
		if u.Reject != "" || len(u.Readings) == 0 || !r.happens(r.plan.poison) {
			continue
		}
		at := r.rng.IntN(len(u.Readings))
		key := ledger.KeyOf(u.Unit.Device, u.Readings[at].Bucket())
		if uses[key] > 1 {
			continue
		}
		r.tables.never[key] = true
		u.Readings = append(u.Readings[:at:at], u.Readings[at+1:]...)
		u.Reject = roomsensor.ReasonNotStorable
	}
}

// play sends all requests under faults, ends the faults, and compares the tables with the ledger, then again after a
// replay of the stream. It returns what did not end.
func (r *run) play(v *ledger.Verdict) (unfinished string) {
	publisher := r.startPublisher()
	if !r.runWhile(func() { _ = publisher.queue.DeclareMissing(publisher.ctx) }) {
		return "no consumer"
	}
	for range r.plan.receivers {
		r.startReceiver()
	}
	for range r.plan.workers {
		r.startWorker()
	}
	r.scheduleFaults()
	r.senders.Store(int64(len(r.requests)))
	for i, request := range r.requests {
		go r.send(request, publisher, newRNG(r.rng.Uint64(), uint64(i)))
	}
	idle := func() bool { return r.senders.Load() == 0 && r.stream.settled() && r.quiet() }
	r.runUntil(idle, r.plan.span+r.between(0, 3*r.plan.span))
	r.calm()
	if !r.runUntil(idle, settleIn) {
		return fmt.Sprintf("not idle: %d senders, %d of %d messages settled, %d delivered", r.senders.Load(),
			r.stream.consumerFloor(), len(r.stream.log), r.tables.total())
	}
	for _, m := range r.stream.log {
		if id, ok := ledger.IDOf(m.Data); ok {
			r.ledger.Arrived(id, ledger.Arrival{Sequence: m.sequence, At: m.at})
		}
	}
	found, verdict := r.ledger.Compare(r.tables.ledgerRows())
	v.Add(verdict)
	v.Add(r.ledger.Rejects(r.tables.ledgerRejects()))
	v.Add(r.ledger.States(r.tables.ledgerStates()))
	if !r.runWhile(func() { _ = publisher.queue.Replay(publisher.ctx, nil) }) || !r.runUntil(idle, settleIn) {
		return "the replay did not end"
	}
	again, _ := r.ledger.Compare(r.tables.ledgerRows())
	v.Add(found.Unchanged(again))
	v.Add(r.ledger.Rejects(r.tables.ledgerRejects()))
	v.Add(r.ledger.States(r.tables.ledgerStates()))
	return ""
}

// calm ends all faults: servers are there, and every process runs.
func (r *run) calm() {
	r.record("calm")
	r.calmed = true
	r.plan.calm()
	r.tables.setDown(false)
	r.stream.setGone(false)
	r.stream.pump()
	for _, p := range r.processes {
		p.paused = time.Time{}
	}
}

// end stops all processes and waits for their goroutines, which the bubble requires.
func (r *run) end() {
	r.calmed = true
	r.over.Store(true)
	for _, p := range r.processes {
		if !p.isDead() {
			p.die()
		}
	}
	r.steps = nil // Nothing starts any more.
	r.runUntil(func() bool { return false }, time.Hour)
}

// send sends a request until it is confirmed or refused, or once if its sender abandons it.
func (r *run) send(request *ledger.Request, publisher *process, rng *rand.Rand) {
	defer r.senders.Add(-1)
	sleep(request.Due + time.Duration(rng.IntN(int(time.Millisecond))))
	for !r.over.Load() {
		var outcome ledger.Outcome
		wait := time.Second
		if request.Path == ledger.Stream {
			outcome = r.publish(request, publisher)
		} else {
			outcome, wait = r.post(request, rng)
		}
		r.ledger.Note(request.Uploads, outcome)
		if outcome == ledger.OK || request.Abandoned || outcome == ledger.Failed && wait == 0 {
			return
		}
		sleep(wait + time.Duration(rng.IntN(int(time.Second))))
	}
}

func sleep(d time.Duration) { _ = retry.Sleep(context.Background(), d) } // It fails only with its context.

// publish publishes the upload of a request without the receiver.
func (r *run) publish(request *ledger.Request, p *process) ledger.Outcome {
	for _, u := range request.Uploads {
		_, err := p.queue.Publish(p.ctx, []queue.Message{{HardwareID: u.Unit.HardwareID, Text: u.Text}})
		if err != nil {
			return ledger.Unknown
		}
	}
	return ledger.OK
}

// post sends a request to a receiver. wait is until the next attempt, or 0 if the request was refused.
func (r *run) post(request *ledger.Request, rng *rand.Rand) (o ledger.Outcome, wait time.Duration) {
	p := r.receiver(rng)
	if p == nil {
		return ledger.Failed, time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if rng.Float64()*100 < r.plan.abort {
		time.AfterFunc(time.Duration(rng.IntN(int(time.Second))), cancel)
	}
	sent := httptest.NewRequestWithContext(ctx, http.MethodPost, "/uploads", bytes.NewReader(request.Body()))
	sent.Header.Set("Authorization", "Bearer "+r.credentials[request.Team])
	answered := make(chan *http.Response, 1)
	go func() {
		recorder := httptest.NewRecorder()
		p.handler.ServeHTTP(recorder, sent)
		answered <- recorder.Result()
	}()
	select {
	case response := <-answered:
		return outcomeOf(response)
	case <-ctx.Done():
	case <-p.killed:
	}
	return ledger.Unknown, time.Second
}

// receiver returns a receiver that runs, or nil.
func (r *run) receiver(rng *rand.Rand) *process {
	var open []*process
	for _, p := range r.processes {
		if p.handler != nil && !p.isDead() && p.ctx.Err() == nil {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[rng.IntN(len(open))]
}

func outcomeOf(response *http.Response) (o ledger.Outcome, wait time.Duration) {
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	wait = time.Duration(seconds) * time.Second
	switch response.StatusCode {
	case http.StatusAccepted:
		return ledger.OK, 0
	case http.StatusBadRequest:
		return ledger.Failed, 0
	case http.StatusTooManyRequests: // Nothing of it was stored.
		return ledger.Failed, wait
	}
	return ledger.Unknown, max(wait, time.Second)
}
