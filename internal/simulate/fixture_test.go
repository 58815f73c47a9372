package simulate_test

import (
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// midnight is the current time in all tests, a Thursday in winter.
var midnight = time.Date(2026, time.January, 15, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func fleet(devices int) simulate.Fleet {
	return simulate.Fleet{Seed: 7, Devices: devices, FirstHardwareID: "dev:900000000000001"}
}

func plan(mode simulate.Mode, devices, days int) *simulate.Plan {
	return &simulate.Plan{
		Fleet: fleet(devices), Mode: mode,
		From: midnight.Add(-time.Duration(days) * day), Until: midnight,
	}
}

// lines returns the output of the simulate command.
func lines(p *simulate.Plan) []byte {
	var out []byte
	for u := range p.Uploads() {
		out = append(u.AppendJSON(out), '\n')
	}
	return out
}

// sent is one reading as it was sent.
type sent struct {
	roomsensor.Measurement
	unit string
}

// readings returns everything that a plan sends, in order.
func readings(p *simulate.Plan) []sent {
	var all []sent
	for u := range p.Uploads() {
		for _, m := range u.Readings {
			all = append(all, sent{m, u.HardwareID})
		}
	}
	return all
}

// distinct returns a set of readings.
func distinct(all []sent) map[sent]struct{} {
	set := make(map[sent]struct{}, len(all))
	for _, s := range all {
		set[s] = struct{}{}
	}
	return set
}

// uploads returns copies of the uploads of a plan.
func uploads(p *simulate.Plan) []simulate.Upload {
	var all []simulate.Upload
	for u := range p.Uploads() {
		c := *u
		c.Readings = slices.Clone(u.Readings)
		all = append(all, c)
	}
	return all
}

// mean returns the mean of a metric between two hours (UTC) of some days.
func mean(d *simulate.Device, m roomsensor.Metric, from time.Time, days, fromHour, toHour int) float64 {
	var sum, n float64
	for r := range d.Measurements(from, from.Add(time.Duration(days)*day)) {
		if hour := r.MeasuredAt.Hour(); hour < fromHour || hour >= toHour {
			continue
		}
		if x, ok := r.Values.Get(m); ok {
			sum, n = sum+float64(x), n+1
		}
	}
	return sum / n
}
