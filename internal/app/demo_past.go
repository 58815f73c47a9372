package app

import (
	"context"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// writtenAtOnce is how many readings one transaction stores.
const writtenAtOnce = 2000

// writeAsOfThen stores the uploads of a device as if they had arrived when
// they were sent. The queue cannot do that: it stamps what it takes with its
// own clock, and then no device could look as if it were away (decision 39).
// So these go past the queue, into the transaction that the worker uses too;
// only their ingested_at tells that they were written now.
func (d *demo) writeAsOfThen(ctx context.Context, i int, uploads iter.Seq[*simulate.Upload]) error {
	device := d.state.Devices[i]
	batch := roomsensor.Batch{}
	for u := range uploads {
		for _, m := range u.Readings {
			batch.Rows = append(batch.Rows, roomsensor.DeviceMeasurement{DeviceID: device, Measurement: m})
		}
		batch.Seen = []roomsensor.DeviceSeen{seenThen(device, u)}
		if len(batch.Rows) < writtenAtOnce {
			continue
		}
		if err := d.write(ctx, batch); err != nil {
			return err
		}
		batch = roomsensor.Batch{}
	}
	return d.write(ctx, batch)
}

func (d *demo) write(ctx context.Context, batch roomsensor.Batch) error {
	if len(batch.Seen) == 0 {
		return nil
	}
	if _, err := d.operator.store.WriteBatch(ctx, batch); err != nil {
		return fmt.Errorf("writing the history of a device that is away: %w", err)
	}
	return nil
}

// seenThen is what the arrival of an upload says of its device.
func seenThen(device uuid.UUID, u *simulate.Upload) roomsensor.DeviceSeen {
	firmware := u.Firmware // The upload changes with the next one.
	seen := roomsensor.DeviceSeen{DeviceID: device, LastSeenAt: u.SentAt, Firmware: &firmware, FirmwareAt: u.SentAt}
	if u.Signal != nil {
		rssi, bars := int32(u.Signal.RSSI), int16(u.Signal.Bars) //nolint:gosec // Some dBm, and at most 5 bars.
		seen.Signal, seen.SignalAt = &roomsensor.Signal{RSSI: &rssi, Bars: &bars}, u.SentAt
	}
	return seen
}
