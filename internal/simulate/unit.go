package simulate

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"roomsensor/internal/roomsensor"
)

// unit is one physical sensor with its own bias, noise and resolution.
type unit struct {
	seed    uint64
	phase   time.Duration // offset in each bucket at which it measures
	bias    [roomsensor.MetricCount]float64
	steps   [roomsensor.MetricCount]float64 // resolution: steps per unit of the metric
	lacks   uint8                           // bit mask of the metrics without a sensor
	rssi    float64                         // dBm, on average
	rollout time.Duration                   // delay of firmware updates
}

// The standard deviation of the noise of each metric, and of the bias of units. Those of light are relative: 0.04 is 4
// percent.
var (
	noiseOf = [roomsensor.MetricCount]float64{6, 0.06, 0.35, 0.04, 1.1}
	biasOf  = [roomsensor.MetricCount]float64{14, 0.18, 1.3, 0.05, 0.6}
)

// models are the resolutions of the two models.
var models = [2][roomsensor.MetricCount]float64{{1, 10, 10, 1, 10}, {1, 100, 100, 10, 10}}

func newUnit(seed uint64, hardwareID string) unit {
	name := fnv.New64a()
	_, _ = name.Write([]byte(hardwareID)) // A hash never fails.
	u := unit{seed: mix(seed ^ name.Sum64())}
	d := newRNG(u.seed, streamUnit)
	u.phase = time.Duration(4+d.IntN(290)) * time.Second
	for m := range u.bias {
		u.bias[m] = d.around(0, biasOf[m])
	}
	u.steps = models[d.IntN(len(models))]
	if d.chance(0.08) {
		u.lacks |= 1 << roomsensor.Sound
	}
	if d.chance(0.04) {
		u.lacks |= 1 << roomsensor.Lux
	}
	u.rssi = d.between(-98, -66)
	u.rollout = time.Duration(d.IntN(14*24)) * time.Hour
	return u
}

// fault is a sensor that fails for some slots.
type fault struct {
	metric roomsensor.Metric
	left   int
}

// read returns what this unit measures in the room.
func (u *unit) read(a *air, f *fault, d *rng) roomsensor.Values {
	truth := [roomsensor.MetricCount]float64{
		roomsensor.CO2: a.co2, roomsensor.Temp: a.temp, roomsensor.Humidity: a.humidity(),
		roomsensor.Lux: a.lux, roomsensor.Sound: a.sound,
	}
	f.step(d)
	var values roomsensor.Values
	for _, m := range roomsensor.Metrics {
		blur := d.around(u.bias[m], noiseOf[m])
		if u.lacks&(1<<m) != 0 || f.left > 0 && f.metric == m {
			continue
		}
		x := truth[m] + blur
		if m == roomsensor.Lux {
			x = truth[m] * (1 + blur)
		}
		least, greatest := m.Range()
		x = math.Round(max(least, min(greatest, x))*u.steps[m]) / u.steps[m]
		values.Set(m, float32(x))
	}
	return values
}

// step ends or begins a fault.
func (f *fault) step(d *rng) {
	if f.left > 0 {
		f.left--
		return
	}
	if d.chance(0.001) {
		*f = fault{roomsensor.Metrics[d.IntN(roomsensor.MetricCount)], 1 + d.IntN(8)}
	}
}

// firmwareFrom is the release date of firmware 2.0.0. A minor version follows every eight weeks.
var firmwareFrom = time.Date(2024, time.January, 8, 9, 0, 0, 0, time.UTC)

// firmware returns the firmware version at a time.
func (u *unit) firmware(at time.Time) string {
	releases := at.Add(-u.rollout).Sub(firmwareFrom) / (8 * 7 * 24 * time.Hour)
	if releases < 0 {
		return "1.9.4"
	}
	return fmt.Sprintf("2.%d.%d", releases, releases%3)
}
