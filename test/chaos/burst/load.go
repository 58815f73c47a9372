package burst

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/test/ledger"
)

// The orders in which a device sends its buffered readings.
const (
	Mixed       = "mixed" // devices use the other orders in turn
	oldestFirst = "oldest"
	newestFirst = "newest"
	shuffled    = "shuffled"
)

var orders = []string{Mixed, oldestFirst, newestFirst, shuffled}

const (
	// uploadReadings is the number of readings per upload, as in the simulator's burst mode.
	uploadReadings = 500
	// repeatedShare is the share of uploads that are sent twice.
	repeatedShare = 0.1

	firstLate  = "dev:700000000000001"
	firstFresh = "dev:800000000000001"
)

// load contains the uploads of the late devices.
type load struct {
	units    []*ledger.Unit
	requests []*ledger.Request // one upload each, the first upload of every device first
	readings int               // sent, including repeated ones
	distinct int
	bytes    int
}

// deviceID derives the id of a device from its first unit.
func deviceID(hardwareID string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(hardwareID)) }

// makeLoad generates the load. The same options and time give the same load.
func makeLoad(o *Options, until time.Time) *load {
	l := &load{}
	fleet := simulate.Fleet{Seed: o.Seed, Devices: o.Devices, FirstHardwareID: firstLate}
	from := until.Add(-time.Duration(o.Days * float64(24*time.Hour)))
	rng := rand.New(rand.NewPCG(o.Seed, 1)) //nolint:gosec // The same seed must give the same load.
	byDevice := make([][]*ledger.Upload, o.Devices)
	id := 0
	for i := range o.Devices {
		device := fleet.Device(i)
		unit := &ledger.Unit{HardwareID: device.HardwareID, Device: deviceID(device.HardwareID)}
		l.units = append(l.units, unit)
		measured := slices.Collect(device.Measurements(from, until))
		l.distinct += len(measured)
		for part := range slices.Chunk(arrange(measured, o.Order, i, rng), uploadReadings) {
			wire := simulate.Upload{HardwareID: unit.HardwareID, SentAt: until, Firmware: "2.4.1", Readings: part}
			id++
			u := &ledger.Upload{ID: id, Unit: unit, Text: wire.AppendJSON(nil), Readings: part}
			for again := true; again; again = rng.Float64() < repeatedShare {
				byDevice[i] = append(byDevice[i], u)
				l.readings += len(part)
				l.bytes += len(u.Text)
			}
		}
	}
	l.interleave(byDevice)
	return l
}

// arrange returns the measurements in the order in which the i-th device sends them.
func arrange(measured []roomsensor.Measurement, order string, i int, rng *rand.Rand) []roomsensor.Measurement {
	sent := slices.Clone(measured)
	if order == Mixed {
		order = orders[1+i%3]
	}
	switch order {
	case newestFirst:
		slices.Reverse(sent)
	case shuffled:
		rng.Shuffle(len(sent), func(a, b int) { sent[a], sent[b] = sent[b], sent[a] })
	}
	return sent
}

// interleave appends the first upload of every device, then the second of every device, and so on.
func (l *load) interleave(byDevice [][]*ledger.Upload) {
	for turn := 0; ; turn++ {
		before := len(l.requests)
		for _, uploads := range byDevice {
			if turn < len(uploads) {
				l.requests = append(l.requests, &ledger.Request{Uploads: uploads[turn : turn+1]})
			}
		}
		if len(l.requests) == before {
			return
		}
	}
}
