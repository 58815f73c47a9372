package demo

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

const (
	// batchReadings is how many readings one transaction stores.
	batchReadings = 2000
	// workerPoll is how often the demo checks whether the worker has stored the history.
	workerPoll = 100 * time.Millisecond
	// progressInterval is how often the demo reports its progress.
	progressInterval = 2 * time.Second
)

// fillHistory fills the readings up to now: the whole history at the first start, and later what is missing since the
// last run, as if the devices had kept measuring meanwhile.
func (d *demo) fillHistory(ctx context.Context) error {
	now := time.Now().UTC()
	var newest []time.Time
	err := process.Patiently(ctx, func() (err error) {
		newest, err = d.newestBuckets(ctx)
		return err
	})
	if err != nil {
		return err
	}
	from := func(i int) time.Time {
		if known := newest[i]; known.After(now.Add(-d.options.History)) {
			return known // The newest bucket again: the last run may have ended before its last measurement.
		}
		return now.Add(-d.options.History)
	}
	p := newProgress(d, from, now)
	for i := range demoDevices {
		if err := d.fillDevice(ctx, i, from(i), now, p); err != nil {
			return err
		}
	}
	if err := d.awaitWorker(ctx); err != nil {
		return err
	}
	for i := range demoDevices {
		if err := d.backdate(ctx, i, roomsensor.BucketOf(from(i)), now); err != nil {
			return err
		}
	}
	p.finish()
	return nil
}

// backdate records that the readings of a device arrived soon after they were measured, and those of the time without a
// connection at its end. Otherwise the whole history would be late.
func (d *demo) backdate(ctx context.Context, i int, from, now time.Time) error {
	began, ended := d.times(demoDevices[i].unconnected)
	for _, p := range []struct{ from, to, notBefore time.Time }{
		{from: from, to: earliest(began, now)},
		{from: latest(from, began), to: ended, notBefore: ended},
		{from: latest(from, ended), to: now},
	} {
		if !p.from.Before(p.to) {
			continue
		}
		if err := d.store.BackdateReadings(ctx, d.state.Devices[i], p.from, p.to, p.notBefore); err != nil {
			return err
		}
	}
	return nil
}

// newestBuckets returns the newest stored bucket of each device; the zero time if there is none.
func (d *demo) newestBuckets(ctx context.Context) ([]time.Time, error) {
	devices, err := d.store.CurrentDevices(ctx, d.state.TeamID,
		roomsensor.DeviceQuery{Limit: roomsensor.MaxPage}, roomsensor.SummaryWindow(time.Now()))
	if err != nil {
		return nil, fmt.Errorf("reading the newest readings: %w", err)
	}
	newest := make([]time.Time, len(demoDevices))
	for i, id := range d.state.Devices {
		for k := range devices {
			if devices[k].ID == id && devices[k].Latest != nil {
				newest[i] = devices[k].Latest.BucketAt
			}
		}
	}
	return newest, nil
}

// fillDevice uploads the readings of a device that reports, and writes those of a device that does not directly.
func (d *demo) fillDevice(ctx context.Context, i int, from, now time.Time, p *progress) error {
	device := &demoDevices[i]
	uploads := d.uploads(i, from, device.behavior.until(now))
	switch device.behavior {
	case neverReported:
		return nil
	case wentStale, wentOffline:
		return d.writeWithHeartbeats(ctx, i, p.count(uploads))
	case reports:
	}
	to := d.receiverSink()
	for u := range p.count(uploads) {
		if err := to.Send(ctx, u); err != nil {
			return err
		}
	}
	return to.Flush(ctx)
}

// uploads returns the uploads of a device in a window, each from the unit that was in the device at that time.
func (d *demo) uploads(i int, from, until time.Time) iter.Seq[*simulate.Upload] {
	first, replaced := d.originalUnit(i), d.replacedAt(i)
	unplugged, plugged := d.times(demoDevices[i].unplugged)
	return func(yield func(*simulate.Upload) bool) {
		for _, part := range []struct {
			unit        *simulate.Device
			from, until time.Time
		}{
			{first, from, earliest(until, earliest(replaced, unplugged))},
			{first, latest(from, plugged), earliest(until, replaced)},
			{d.unit(i), latest(from, replaced), until},
		} {
			for u := range part.unit.Uploads(part.from, part.until) {
				if !yield(u) {
					return
				}
			}
		}
	}
}

// times returns when a span began and ended; roomsensor.Forever twice for the zero span, which never began.
func (d *demo) times(s span) (began, ended time.Time) {
	if s == (span{}) {
		return roomsensor.Forever, roomsensor.Forever
	}
	return d.state.MadeAt.Add(-s.began), d.state.MadeAt.Add(-s.ended)
}

// replacedAt returns when the unit of a device was replaced; roomsensor.Forever if it never was.
func (d *demo) replacedAt(i int) time.Time {
	if demoDevices[i].replaced == 0 {
		return roomsensor.Forever
	}
	return d.state.MadeAt.Add(-demoDevices[i].replaced)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// writeWithHeartbeats stores the uploads of a device as if each had arrived when it was sent. The queue cannot do that,
// because it stamps messages with its own clock, and then no device could be stale or offline (decision 39). So these
// uploads bypass the queue and use the worker's transaction directly; only ingested_at shows that they were written
// now.
func (d *demo) writeWithHeartbeats(ctx context.Context, i int, uploads iter.Seq[*simulate.Upload]) error {
	device := d.state.Devices[i]
	batch := roomsensor.Batch{}
	for u := range uploads {
		for _, m := range u.Readings {
			batch.Rows = append(batch.Rows, roomsensor.DeviceMeasurement{DeviceID: device, Measurement: m})
		}
		batch.Seen = []roomsensor.DeviceHeartbeat{heartbeat(device, u)}
		if len(batch.Rows) < batchReadings {
			continue
		}
		if err := d.writeBatch(ctx, batch); err != nil {
			return err
		}
		batch = roomsensor.Batch{}
	}
	return d.writeBatch(ctx, batch)
}

func (d *demo) writeBatch(ctx context.Context, batch roomsensor.Batch) error {
	if len(batch.Seen) == 0 {
		return nil
	}
	if _, err := d.store.WriteBatch(ctx, batch); err != nil {
		return fmt.Errorf("writing the history of an offline device: %w", err)
	}
	return nil
}

// heartbeat returns what the arrival of an upload at its SentAt records about the device.
func heartbeat(device uuid.UUID, u *simulate.Upload) roomsensor.DeviceHeartbeat {
	firmware := u.Firmware // The iterator reuses the upload.
	seen := roomsensor.DeviceHeartbeat{DeviceID: device, LastSeenAt: u.SentAt, Firmware: &firmware, FirmwareAt: u.SentAt}
	if u.Signal != nil {
		rssi, bars := int32(u.Signal.RSSI), int16(u.Signal.Bars) //nolint:gosec // Some dBm, and at most 5 bars.
		seen.Signal, seen.SignalAt = &roomsensor.Signal{RSSI: &rssi, Bars: &bars}, u.SentAt
	}
	return seen
}

// awaitWorker waits until the worker has stored everything in the queue.
func (d *demo) awaitWorker(ctx context.Context) error {
	return retry.Until(ctx, workerPoll, func(ctx context.Context) (done bool, err error) {
		err = process.Patiently(ctx, func() error {
			state, err := d.queue.State(ctx)
			done = err == nil && state.Waiting == 0 && state.Unacknowledged == 0
			return err
		})
		if err != nil {
			return false, fmt.Errorf("reading the state of the queue: %w", err)
		}
		return done, nil
	})
}

// progress reports how much of the history was sent.
type progress struct {
	demo     *demo
	expected int // readings
	sent     int // readings
	began    time.Time
	reported time.Time
}

func newProgress(d *demo, from func(i int) time.Time, now time.Time) *progress {
	p := &progress{demo: d, began: time.Now(), reported: time.Now()}
	for i := range demoDevices {
		if behavior := demoDevices[i].behavior; behavior != neverReported {
			p.expected += max(0, int(behavior.until(now).Sub(from(i))/roomsensor.BucketLength)+1)
		}
	}
	d.printf("Filling the history up to now: at most %d readings.", p.expected)
	return p
}

// count passes uploads through and counts their readings.
func (p *progress) count(uploads iter.Seq[*simulate.Upload]) iter.Seq[*simulate.Upload] {
	return func(yield func(*simulate.Upload) bool) {
		for u := range uploads {
			p.sent += len(u.Readings)
			if now := time.Now(); now.Sub(p.reported) >= progressInterval {
				p.reported = now
				p.demo.printf("  %d readings (%d %%)", p.sent, 100*p.sent/max(1, p.expected))
			}
			if !yield(u) {
				return
			}
		}
	}
}

func (p *progress) finish() {
	p.demo.printf("Stored %d readings in %s.", p.sent, time.Since(p.began).Round(10*time.Millisecond))
}
