package app

import (
	"context"
	"fmt"
	"iter"
	"time"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// fillHistory brings the readings up to now: the whole history at the first
// start, later what was missed since, as from devices that kept measuring
// while nobody took their uploads.
func (d *demo) fillHistory(ctx context.Context, _ *lifecycle) error {
	now := time.Now().UTC()
	var newest []time.Time
	err := patiently(ctx, func() (err error) {
		newest, err = d.newest(ctx)
		return err
	})
	if err != nil {
		return err
	}
	from := func(i int) time.Time {
		if known := newest[i]; known.After(now.Add(-d.options.History)) {
			return known // That bucket again: it may have been measured only later.
		}
		return now.Add(-d.options.History)
	}
	progress := newDemoProgress(d, from, now)
	for i := range demoCast {
		if err := d.fillDevice(ctx, i, from(i), now, progress); err != nil {
			return err
		}
	}
	if err := d.awaitWorker(ctx); err != nil {
		return err
	}
	progress.finish()
	return nil
}

// newest is the newest bucket that is stored of each device; the zero time
// where there is none.
func (d *demo) newest(ctx context.Context) ([]time.Time, error) {
	devices, err := d.operator.store.CurrentDevices(ctx, d.state.TeamID,
		roomsensor.DeviceQuery{Limit: roomsensor.MaxPage}, roomsensor.SummaryWindow(time.Now()))
	if err != nil {
		return nil, fmt.Errorf("looking for the newest readings: %w", err)
	}
	newest := make([]time.Time, len(demoCast))
	for i, id := range d.state.Devices {
		for k := range devices {
			if devices[k].ID == id && devices[k].Latest != nil {
				newest[i] = devices[k].Latest.BucketAt
			}
		}
	}
	return newest, nil
}

// fillDevice sends the readings of one device the way they would have come.
func (d *demo) fillDevice(ctx context.Context, i int, from, now time.Time, progress *demoProgress) error {
	cast := &demoCast[i]
	uploads := d.uploads(i, from, cast.part.until(now))
	switch cast.part {
	case inStock:
		return nil
	case wentStale, wentOffline:
		return d.writeAsOfThen(ctx, i, progress.watch(uploads))
	case reports:
	}
	to := d.receiver()
	var line []byte
	for u := range progress.watch(uploads) {
		line = u.AppendJSON(line[:0])
		if err := to.Send(ctx, u.HardwareID, line); err != nil {
			return err
		}
	}
	return to.Flush(ctx)
}

// uploads are those of a device in a window, from the unit that sat in it at
// the time.
func (d *demo) uploads(i int, from, until time.Time) iter.Seq[*simulate.Upload] {
	first, swapped := d.state.fleet().Device(i), d.swappedAt(i)
	return func(yield func(*simulate.Upload) bool) {
		for u := range first.Uploads(from, earlier(until, swapped)) {
			if !yield(u) {
				return
			}
		}
		for u := range d.unit(i).Uploads(later(from, swapped), until) {
			if !yield(u) {
				return
			}
		}
	}
}

// swappedAt is when another unit came into a device.
func (d *demo) swappedAt(i int) time.Time {
	if demoCast[i].swapped == 0 {
		return roomsensor.Forever
	}
	return d.state.MadeAt.Add(-demoCast[i].swapped)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// awaitWorker returns once the worker has stored all that is in the queue.
func (d *demo) awaitWorker(ctx context.Context) error {
	ticker := time.NewTicker(workerPoll)
	defer ticker.Stop()
	for {
		var state queue.State
		err := patiently(ctx, func() (err error) {
			state, err = d.queue.State(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("looking at the queue: %w", err)
		}
		if state.Waiting == 0 && state.Unacknowledged == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

const workerPoll = 100 * time.Millisecond
