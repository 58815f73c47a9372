package app

import (
	"context"
	"net"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/simulate"
)

// startAPI runs a whole API process inside the demo's.
func (d *demo) startAPI(ctx context.Context, l *lifecycle) (err error) {
	d.api = config.API{Database: d.database, Log: d.ingest.Log}
	if d.api.APIAddr, err = d.reserve(ctx, l, "the API", d.options.APIAddr); err != nil {
		return err
	}
	if d.api.OpsAddr, err = d.reserve(ctx, l, "the ops listener of the API", d.options.APIOpsAddr); err != nil {
		return err
	}
	return d.startProcess(ctx, l, "api", func(ctx context.Context, p Process) error { return RunAPI(ctx, d.api, p) })
}

// startIngest runs a whole process of receiver and worker inside the demo's.
func (d *demo) startIngest(ctx context.Context, l *lifecycle) (err error) {
	d.ingest.Site = d.api.Site // The receiver's errors name pages that the API serves.
	if d.ingest.IngestAddr, err = d.reserve(ctx, l, "the receiver", d.options.IngestAddr); err != nil {
		return err
	}
	if d.ingest.OpsAddr, err = d.reserve(ctx, l, "the ops listener of ingest", d.options.IngestOpsAddr); err != nil {
		return err
	}
	d.ingest.Site = d.api.Site // Its errors name the pages that the API serves.
	return d.startProcess(ctx, l, "ingest", func(ctx context.Context, p Process) error {
		return RunIngest(ctx, d.ingest, p)
	})
}

// startProcess returns once a process is ready.
func (d *demo) startProcess(
	ctx context.Context, l *lifecycle, name string, run func(context.Context, Process) error,
) error {
	ready := make(chan struct{})
	background(l, name, func(ctx context.Context) error { //nolint:contextcheck // It ends with its closer.
		return run(ctx, Process{
			Log:     d.log.With().Str("process", name).Logger(),
			Version: d.options.Version,
			Listen:  d.listener,
			Ready:   func() { close(ready) },
		})
	})
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listener hands a reserved listener out.
func (d *demo) listener(ctx context.Context, address string) (net.Listener, error) {
	if listener, ok := d.listeners[address]; ok {
		return listener, nil
	}
	return listenTCP(ctx, address)
}

// startDevices lets the devices that report go on.
func (d *demo) startDevices(_ context.Context, l *lifecycle) error {
	var devices []*simulate.Device
	for i := range demoCast {
		if demoCast[i].part == reports {
			devices = append(devices, d.unit(i))
		}
	}
	background(l, "devices", func(ctx context.Context) error { //nolint:contextcheck // It ends with its closer.
		d.live(ctx, devices)
		return nil
	})
	return nil
}

// unit is the unit that sits in a device now.
func (d *demo) unit(i int) *simulate.Device {
	unit := d.state.fleet().Device(i)
	if demoCast[i].swapped > 0 {
		return unit.Replaced(d.state.replacement(i))
	}
	return unit
}

// live sends what the devices measure through the receiver, as devices do.
// What it cannot take goes with the next upload.
func (d *demo) live(ctx context.Context, devices []*simulate.Device) {
	sender := newPacedSender(d.receiver())
	for u := range simulate.LiveUploads(devices, time.Now(), d.options.Every) {
		err := sender.send(ctx, u, u.SentAt)
		if err == nil {
			err = sender.to.Flush(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.log.Warn().Err(err).Msg("an upload of a live device did not arrive, trying again with the next")
		}
	}
}

func (d *demo) receiver() UploadSink {
	return NewReceiverSink("http://"+d.ingest.IngestAddr, d.state.IngestKey)
}
