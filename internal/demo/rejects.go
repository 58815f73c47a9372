package demo

import (
	"context"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// strayHistory is the age of the first upload of the unregistered unit when the demo is created.
const strayHistory = 3 * time.Hour

// strayUnit returns a unit that nobody registered. It uploads with the key of the team, and is rejected.
func (d *demo) strayUnit() *simulate.Device { return d.state.fleet().Device(2 * len(demoDevices)) }

// sendRejected uploads what is rejected, for three reasons: the unit is not registered, a value is impossible, and a
// clock is hours ahead. Only the run that creates the team does so: later ones still have its rejects.
func (d *demo) sendRejected(ctx context.Context) error {
	if !d.created {
		return nil
	}
	now := time.Now().UTC()
	to := d.receiverSink()
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
