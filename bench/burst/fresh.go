package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// fresh is the devices that send what they just measured: it knows when each of their uploads was sent and when a
// client of the API first saw it.
type fresh struct {
	fleet   simulate.Fleet
	devices map[uuid.UUID]int
	gateway *gateway
	reader  *reader
	every   time.Duration // between two uploads of all devices together

	mu    sync.Mutex
	sent  []probe
	open  [][]int // by device: indices of sent that nobody saw yet, oldest first
	ended bool
}

// probe is one upload of one reading. Its CO2 is its number, which grows, so that the newest reading of a device tells
// which of its uploads are visible.
type probe struct{ began, confirmed, seen time.Time }

func (s *site) newFresh(o *options, g *gateway, r *reader) *fresh {
	f := &fresh{
		fleet: simulate.Fleet{Devices: o.Fresh, FirstHardwareID: firstFresh}, devices: map[uuid.UUID]int{},
		gateway: g, reader: r, every: time.Duration(float64(time.Second) / o.FreshRate), open: make([][]int, o.Fresh),
	}
	for i, id := range s.fresh {
		f.devices[id] = i
	}
	return f
}

// run sends and watches until stop is closed and everything was seen.
func (f *fresh) run(ctx context.Context, stop <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.send(ctx, group, stop) })
	group.Go(func() error { return f.watch(ctx) })
	return group.Wait() //nolint:wrapcheck // Wrapped below.
}

// send posts at the rate, however long an answer takes.
func (f *fresh) send(ctx context.Context, group *errgroup.Group, stop <-chan struct{}) error {
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return fmt.Errorf("sending fresh readings: %w", ctx.Err())
		case <-stop:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ended = true
			return nil
		case <-ticker.C:
		}
		i, text := f.next(n % len(f.open))
		group.Go(func() error {
			err := f.gateway.post(ctx, text)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sent[i].confirmed = time.Now()
			return err
		})
	}
}

func (f *fresh) next(device int) (i int, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	m := roomsensor.Measurement{MeasuredAt: now.UTC().Truncate(time.Microsecond)}
	f.sent = append(f.sent, probe{began: now})
	m.Values.Set(roomsensor.CO2, float32(len(f.sent)))
	i = len(f.sent) - 1
	f.open[device] = append(f.open[device], i)
	u := simulate.Upload{
		HardwareID: f.fleet.HardwareID(device), SentAt: now, Firmware: "2.4.1", Readings: []roomsensor.Measurement{m},
	}
	return i, u.AppendJSON(nil)
}

// watchEvery is how exactly the time of an upload is known.
const watchEvery = 25 * time.Millisecond

func (f *fresh) watch(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for !f.done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watching fresh readings: %w", ctx.Err())
		case <-ticker.C:
		}
		states, err := f.reader.current(ctx, "metadata."+lane+"=fresh")
		if err != nil {
			return err
		}
		f.see(states, time.Now())
	}
	return nil
}

func (f *fresh) done() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := 0
	for _, open := range f.open {
		left += len(open)
	}
	return f.ended && left == 0
}

// see notes which uploads an answer shows.
func (f *fresh) see(states []state, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range states {
		device := f.devices[states[i].DeviceID]
		shown := int(states[i].co2())
		for len(f.open[device]) > 0 && f.open[device][0] < shown {
			f.sent[f.open[device][0]].seen = at
			f.open[device] = f.open[device][1:]
		}
	}
}

// spread is of what was sent in a span.
func (f *fresh) spread(from, to time.Time) freshResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	var confirmed, visible []time.Duration
	for _, p := range f.sent {
		if !p.began.Before(from) && p.began.Before(to) {
			confirmed = append(confirmed, p.confirmed.Sub(p.began))
			visible = append(visible, p.seen.Sub(p.began))
		}
	}
	return freshResult{Uploads: len(visible), Confirmed: spread(confirmed), Visible: spread(visible)}
}
