package demo

import (
	"cmp"
	"context"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/simulate/send"
)

// strayHistory is the age of the first upload of the unregistered unit when the demo is created.
const strayHistory = 3 * time.Hour

// unit returns the unit that is in a device now.
func (d *demo) unit(i int) *simulate.Device {
	unit := d.originalUnit(i)
	if demoDevices[i].replaced > 0 {
		return unit.Replaced(d.state.replacement(i))
	}
	return unit
}

// originalUnit returns the unit that was in a device at first.
func (d *demo) originalUnit(i int) *simulate.Device {
	unit := d.state.fleet().Device(i)
	if demoDevices[i].sealed {
		return unit.Sealed()
	}
	return unit
}

// strayUnit returns a unit that nobody registered. It uploads with the key of the team, and is rejected.
func (d *demo) strayUnit() *simulate.Device { return d.state.fleet().Device(2 * len(demoDevices)) }

// startDevices starts the uploads of the devices that report, and of a unit that is not registered.
func (d *demo) startDevices(context.Context) error {
	devices := []*simulate.Device{d.strayUnit()}
	for i := range demoDevices {
		if demoDevices[i].silent == 0 {
			devices = append(devices, d.unit(i))
		}
	}
	d.Background("devices", func(ctx context.Context) error { //nolint:contextcheck // Its closer ends it.
		d.sendLive(ctx, devices)
		return nil
	})
	return nil
}

// sendLive uploads to the receiver, as real devices do. An upload that fails is sent again with the next one.
func (d *demo) sendLive(ctx context.Context, devices []*simulate.Device) {
	sink := send.NewReceiverSink(d.receiver)
	for u := range simulate.LiveUploads(devices, time.Now(), d.options.Every) {
		if retry.Sleep(ctx, time.Until(u.SentAt)) != nil {
			return
		}
		if err := cmp.Or(sink.Send(ctx, u), sink.Flush(ctx)); err != nil && ctx.Err() == nil {
			d.Log.Warn().Err(err).Msg("could not upload, retrying with the next upload")
		}
	}
}

// sendRejected uploads what is rejected, for three reasons: the unit is not registered, a value is impossible, and a
// clock is hours ahead. Only the run that creates the team does so: later ones still have its rejects.
func (d *demo) sendRejected(ctx context.Context) error {
	if !d.created {
		return nil
	}
	now, to := time.Now().UTC(), send.NewReceiverSink(d.receiver)
	for u := range d.strayUnit().Uploads(now.Add(-strayHistory), now) {
		if err := to.Send(ctx, u); err != nil {
			return err
		}
	}
	for _, bad := range []struct {
		device string
		ahead  time.Duration
		temp   float32 // degrees Celsius
	}{{"Dining hall", 5 * time.Hour, 21.4}, {"Weight room", 0, 231}} {
		m := roomsensor.Measurement{MeasuredAt: now.Add(bad.ahead).Truncate(time.Second)}
		m.Values.Set(roomsensor.Temp, bad.temp)
		err := to.Send(ctx, &simulate.Upload{
			HardwareID: d.unit(deviceIndex(bad.device)).HardwareID, SentAt: m.MeasuredAt, Firmware: "2.17.2",
			Readings: []roomsensor.Measurement{m},
		})
		if err != nil {
			return err
		}
	}
	return to.Flush(ctx)
}
