package demo

import (
	"cmp"
	"context"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/simulate"
	"roomsensor/internal/simulate/send"
)

// startDevices starts the uploads of the devices that report, and of a unit that is not registered.
func (d *demo) startDevices(context.Context) error {
	var devices []*simulate.Device
	for i := range demoDevices {
		if demoDevices[i].behavior == reports {
			devices = append(devices, d.unit(i))
		}
	}
	devices = append(devices, d.strayUnit())
	d.Background("devices", func(ctx context.Context) error { //nolint:contextcheck // Its closer ends it.
		d.sendLive(ctx, devices)
		return nil
	})
	return nil
}

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

// sendLive uploads to the receiver, as real devices do. An upload that fails is sent again with the next one.
func (d *demo) sendLive(ctx context.Context, devices []*simulate.Device) {
	sink := d.receiverSink()
	for u := range simulate.LiveUploads(devices, time.Now(), d.options.Every) {
		if retry.Sleep(ctx, time.Until(u.SentAt)) != nil {
			return
		}
		if err := cmp.Or(sink.Send(ctx, u), sink.Flush(ctx)); err != nil && ctx.Err() == nil {
			d.Log.Warn().Err(err).Msg("could not upload, retrying with the next upload")
		}
	}
}

func (d *demo) receiverSink() send.Sink {
	return send.NewReceiverSink("http://"+d.ingest.IngestAddr, d.state.IngestKey)
}
