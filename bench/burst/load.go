package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// The orders in which a device sends what it kept.
const (
	oldestFirst = "oldest"
	newestFirst = "newest"
	shuffled    = "shuffled"
	mixed       = "mixed" // one device like this, the next like that
)

var orders = []string{mixed, oldestFirst, newestFirst, shuffled}

func knownOrder(order string) bool { return slices.Contains(orders, order) }

const (
	// uploadReadings is what a device puts into one upload, as the simulator's burst does.
	uploadReadings = 500
	// againShare of the uploads come twice.
	againShare = 0.1

	firstLate  = "dev:700000000000001"
	firstFresh = "dev:800000000000001"
)

// load is what the late devices send, and what must be in the tables then.
type load struct {
	fleet    simulate.Fleet
	uploads  [][]parcel                 // by device, in its order
	measured [][]roomsensor.Measurement // by device, oldest first, one a bucket
	readings int                        // that are sent, with those that come twice
	distinct int
	bytes    int
}

// parcel is one upload as it is sent.
type parcel struct {
	unit string
	text []byte
}

func makeLoad(o *options, until time.Time) *load {
	l := &load{fleet: simulate.Fleet{Seed: o.Seed, Devices: o.Devices, FirstHardwareID: firstLate}}
	from := until.Add(-time.Duration(o.Days * float64(24*time.Hour)))
	dice := rand.New(rand.NewPCG(o.Seed, 1)) //nolint:gosec // Nothing here is a secret.
	for i := range o.Devices {
		device := l.fleet.Device(i)
		measured := slices.Collect(device.Measurements(from, until))
		l.measured = append(l.measured, measured)
		l.distinct += len(measured)
		l.uploads = append(l.uploads, l.pack(device.HardwareID, arrange(measured, o.Order, i, dice), until, dice))
	}
	return l
}

// arrange is a copy of what a device measured, in the order in which it sends it.
func arrange(measured []roomsensor.Measurement, order string, i int, dice *rand.Rand) []roomsensor.Measurement {
	sent := slices.Clone(measured)
	if order == mixed {
		order = orders[1+i%3]
	}
	switch order {
	case newestFirst:
		slices.Reverse(sent)
	case shuffled:
		dice.Shuffle(len(sent), func(a, b int) { sent[a], sent[b] = sent[b], sent[a] })
	}
	return sent
}

func (l *load) pack(unit string, sent []roomsensor.Measurement, at time.Time, dice *rand.Rand) (list []parcel) {
	for part := range slices.Chunk(sent, uploadReadings) {
		made := simulate.Upload{HardwareID: unit, SentAt: at, Firmware: "2.4.1", Readings: part}
		next := parcel{unit, made.AppendJSON(nil)}
		for again := true; again; again = dice.Float64() < againShare {
			list = append(list, next)
			l.readings += len(part)
			l.bytes += len(next.text)
		}
	}
	return list
}

// interleaved yields the first upload of every device, then the second of every device, and so on: a fleet that comes
// back at once.
func (l *load) interleaved() (list []parcel) {
	for turn := 0; ; turn++ {
		before := len(list)
		for _, uploads := range l.uploads {
			if turn < len(uploads) {
				list = append(list, uploads[turn])
			}
		}
		if len(list) == before {
			return list
		}
	}
}
