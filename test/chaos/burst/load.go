package burst

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/simulate"
	"roomsensor/test/ledger"
)

const (
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

// makeLoad generates the load: the burst mode of the simulator. The same options and time give the same load.
func makeLoad(o *Options, until time.Time) *load {
	plan := simulate.Plan{
		Fleet: simulate.Fleet{Seed: o.Seed, Devices: o.Devices, FirstHardwareID: firstLate}, Mode: simulate.Burst,
		From: until.Add(-time.Duration(o.Days * float64(24*time.Hour))), Until: until,
	}
	l := &load{}
	indices := map[string]int{} // by unit
	for i := range o.Devices {
		id := plan.HardwareID(i)
		indices[id] = i
		l.units = append(l.units, &ledger.Unit{HardwareID: id, Device: deviceID(id)})
	}
	byDevice := make([][]*ledger.Upload, o.Devices)
	distinct := map[ledger.Key]bool{}
	uploads := 0
	for u := range plan.Uploads() {
		i := indices[u.HardwareID]
		uploads++
		sent := &ledger.Upload{ID: uploads, Unit: l.units[i], Text: u.AppendJSON(nil), Readings: slices.Clone(u.Readings)}
		byDevice[i] = append(byDevice[i], sent)
		l.readings += len(sent.Readings)
		l.bytes += len(sent.Text)
		for _, m := range sent.Readings {
			distinct[ledger.KeyOf(sent.Unit.Device, m.Bucket())] = true
		}
	}
	l.distinct = len(distinct)
	l.interleave(byDevice)
	return l
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
