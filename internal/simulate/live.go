package simulate

import (
	"iter"
	"time"

	"roomsensor/internal/roomsensor"
)

// LiveUploads yields what the devices send from an instant on, for ever: each
// its newest measurement every so often, evenly spread over the time between.
// An upload's SentAt is when it is due; it is valid until the next one. A
// device that measured nothing for two buckets is silent.
func LiveUploads(devices []*Device, from time.Time, every time.Duration) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		lives := make([]*live, len(devices))
		for i, d := range devices {
			lives[i] = newLive(d, from)
		}
		for round := from; ; round = round.Add(every) {
			for i, l := range lives {
				now := round.Add(every * time.Duration(i) / time.Duration(len(lives)))
				if l.isDue(now) && !yield(&l.upload) {
					return
				}
			}
		}
	}
}

// live is a device with its newest measurement and the one after it.
type live struct {
	walk          *walk
	dice          *dice
	newest, ahead roomsensor.Measurement
	upload        Upload
	signal        Signal
}

func newLive(d *Device, from time.Time) *live {
	l := &live{
		walk: newWalk(d, from.Add(-2*roomsensor.BucketLength)),
		dice: newDice(d.seed, streamDelivery, uint64(from.Unix())), //nolint:gosec // An instant only names a place.
	}
	l.ahead = l.walk.measure()
	return l
}

// isDue makes the upload of an instant, if there is anything to send.
func (l *live) isDue(now time.Time) bool {
	for !l.ahead.MeasuredAt.After(now) {
		l.newest, l.ahead = l.ahead, l.walk.measure()
	}
	if now.Sub(l.newest.MeasuredAt) > 2*roomsensor.BucketLength {
		return false
	}
	unit := &l.walk.device.unit
	l.signal = signalOf(int(l.dice.around(unit.rssi, 3)))
	l.upload = Upload{
		HardwareID: l.walk.device.HardwareID,
		SentAt:     now.Truncate(time.Millisecond),
		Firmware:   unit.firmware(now),
		Signal:     &l.signal,
		Readings:   append(l.upload.Readings[:0], l.newest),
	}
	return true
}
