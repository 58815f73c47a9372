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
	"roomsensor/internal/simulate/send"
)

// workerPoll is how often the demo checks whether the worker has stored the history.
const workerPoll = 100 * time.Millisecond

// fillHistory fills the readings up to now: the whole history at the first start, and later what is missing since the
// last run, as if the devices had kept measuring meanwhile.
func (d *demo) fillHistory(ctx context.Context) error {
	began := time.Now()
	now, readings := began.UTC(), 0
	d.printf("Filling the history up to now ...")
	var from []time.Time
	err := process.Patiently(ctx, func() (err error) {
		from, err = d.missingFrom(ctx, now)
		return err
	})
	if err != nil {
		return err
	}
	for i := range demoDevices {
		sent, err := d.fillDevice(ctx, i, from[i], now)
		if err != nil {
			return err
		}
		readings += sent
	}
	if err := d.awaitWorker(ctx); err != nil {
		return err
	}
	for i := range demoDevices {
		if err := d.backdate(ctx, i, roomsensor.BucketOf(from[i]), now); err != nil {
			return err
		}
	}
	d.printf("Stored %d readings in %s.", readings, time.Since(began).Round(10*time.Millisecond))
	return nil
}

// backdate records that the readings of a device arrived soon after they were measured, and those of the time without a
// connection at its end. Otherwise the whole history would be late.
func (d *demo) backdate(ctx context.Context, i int, from, now time.Time) error {
	began, ended := d.times(demoDevices[i].unconnected)
	for _, p := range []struct{ from, to, notBefore time.Time }{
		{from: from, to: roomsensor.Earlier(began, now)},
		{from: roomsensor.Later(from, began), to: ended, notBefore: ended},
		{from: roomsensor.Later(from, ended), to: now},
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

// missingFrom returns from when on the readings of each device are missing: from its newest bucket on, because the last
// run may have ended before the last measurement in it, but at most the length of the history.
func (d *demo) missingFrom(ctx context.Context, now time.Time) ([]time.Time, error) {
	devices, err := d.store.CurrentDevices(ctx, d.state.TeamID,
		roomsensor.DeviceQuery{Limit: roomsensor.MaxPage}, roomsensor.SummaryWindow(now))
	if err != nil {
		return nil, fmt.Errorf("reading the newest readings: %w", err)
	}
	newest := map[uuid.UUID]time.Time{}
	for i := range devices {
		if devices[i].Latest != nil {
			newest[devices[i].ID] = devices[i].Latest.BucketAt
		}
	}
	from := make([]time.Time, len(demoDevices))
	for i, id := range d.state.Devices {
		from[i] = roomsensor.Later(newest[id], now.Add(-d.options.History))
	}
	return from, nil
}

// fillDevice uploads the readings of a device that reports, and writes those of a device that does not directly. It
// returns their number.
func (d *demo) fillDevice(ctx context.Context, i int, from, now time.Time) (readings int, err error) {
	to, deliver := send.NewReceiverSink(d.receiver), d.writeUpload(i)
	if demoDevices[i].silent == 0 {
		deliver = to.Send
	}
	for u := range d.uploads(i, from, now.Add(-demoDevices[i].silent)) {
		if err := deliver(ctx, u); err != nil {
			return 0, err
		}
		readings += len(u.Readings)
	}
	return readings, to.Flush(ctx)
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
			{first, from, roomsensor.Earlier(until, roomsensor.Earlier(replaced, unplugged))},
			{first, roomsensor.Later(from, plugged), roomsensor.Earlier(until, replaced)},
			{d.unit(i), roomsensor.Later(from, replaced), until},
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
	at, _ := d.times(span{demoDevices[i].replaced, 0})
	return at
}

// writeUpload returns a function that stores an upload of a device as if it had arrived when it was sent. The queue
// cannot do that, because it stamps messages with its own clock, and then no device could be stale or offline (decision
// 39). So it bypasses the queue and uses the worker's transaction directly; only ingested_at shows that it was written
// now.
func (d *demo) writeUpload(i int) func(context.Context, *simulate.Upload) error {
	device := d.state.Devices[i]
	return func(ctx context.Context, u *simulate.Upload) error {
		batch := roomsensor.Batch{Seen: []roomsensor.DeviceHeartbeat{heartbeat(device, u)}}
		for _, m := range u.Readings {
			batch.Rows = append(batch.Rows, roomsensor.DeviceMeasurement{DeviceID: device, Measurement: m})
		}
		if _, err := d.store.WriteBatch(ctx, batch); err != nil {
			return fmt.Errorf("writing the history of an offline device: %w", err)
		}
		return nil
	}
}

// heartbeat returns what the arrival of an upload at its SentAt records about the device.
func heartbeat(device uuid.UUID, u *simulate.Upload) roomsensor.DeviceHeartbeat {
	rssi, bars := int32(u.Signal.RSSI), int16(u.Signal.Bars) //nolint:gosec // Some dBm, and at most 5 bars.
	return roomsensor.DeviceHeartbeat{
		DeviceID: device, LastSeenAt: u.SentAt, Firmware: &u.Firmware, FirmwareAt: u.SentAt,
		Signal: &roomsensor.Signal{RSSI: &rssi, Bars: &bars}, SignalAt: u.SentAt,
	}
}

// awaitWorker waits until the worker has stored everything in the queue.
func (d *demo) awaitWorker(ctx context.Context) error {
	return retry.Until(ctx, workerPoll, func(ctx context.Context) (done bool, err error) {
		state, err := d.queue.State(ctx)
		if err != nil {
			return false, fmt.Errorf("reading the state of the queue: %w", err)
		}
		return state.Waiting == 0 && state.Unacknowledged == 0, nil
	})
}
