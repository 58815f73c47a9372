package simulate

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// MaxDevices is the size of the largest fleet.
const MaxDevices = 1_000_000

// Fleet is a number of devices whose hardware ids count up from the first. Equal fleets have identical readings.
type Fleet struct {
	Seed            uint64
	Devices         int
	FirstHardwareID string // dev: and digits; leading zeros are kept
}

// Validate checks the number of devices and the hardware ids. Its error is a sentence for the user.
func (f Fleet) Validate() error {
	if f.Devices < 1 || f.Devices > MaxDevices {
		return fmt.Errorf("the number of devices must be 1 to %d", MaxDevices)
	}
	if !roomsensor.IsHardwareID(f.FirstHardwareID) {
		return errors.New("the first hardware id must be dev: and 1 to 20 digits, for example dev:900000000000001")
	}
	if last := f.HardwareID(f.Devices - 1); !roomsensor.IsHardwareID(last) {
		return fmt.Errorf("the last hardware id would be %s, but at most 20 digits are allowed: start lower", last)
	}
	return nil
}

// HardwareID returns the hardware id of unit i, counted from 0.
func (f Fleet) HardwareID(i int) string {
	digits := strings.TrimPrefix(f.FirstHardwareID, "dev:")
	first, _ := new(big.Int).SetString(digits, 10) // 20 digits may be more than 64 bits.
	return fmt.Sprintf("dev:%0*s", len(digits), first.Add(first, big.NewInt(int64(i))))
}

// Device returns device i, counted from 0. Of six devices, the first is in an office, the others in a meeting room, a
// bedroom, a gym, a locker room and a dining hall.
func (f Fleet) Device(i int) *Device {
	d := &Device{fleet: f.Seed, index: int64(i), room: newRoom(i%len(rooms), newRNG(streamRoom, f.Seed, int64(i)))}
	return d.Replaced(f.HardwareID(i))
}

// Device is a sensor in a room.
type Device struct {
	HardwareID string

	fleet uint64 // seed
	index int64
	room  room
	unit  unit
}

// Replaced returns a device in the same room with another unit.
func (d *Device) Replaced(hardwareID string) *Device {
	other := *d
	other.HardwareID, other.unit = hardwareID, newUnit(d.fleet, hardwareID)
	return &other
}

// Sealed returns the device in the same room, but with closed windows and a blocked vent. With people in it, the air
// becomes bad.
func (d *Device) Sealed() *Device {
	other := *d
	other.room.sealed = true
	other.room.breath *= 3
	other.room.lag *= 2
	return &other
}

// unit is one physical sensor with its own bias.
type unit struct {
	id       int64         // hash of the hardware id
	phase    time.Duration // offset in each bucket at which it measures
	bias     [roomsensor.MetricCount]float64
	lacks    uint8   // bit mask of the metrics without a sensor
	rssi     float64 // dBm, on average
	firmware string
}

// sensors are the standard deviations of the bias of units and of the noise, and the resolution in steps per unit of
// the metric. Bias and noise of light are relative: 0.04 is 4 percent.
var sensors = [roomsensor.MetricCount]struct{ bias, noise, steps float64 }{
	roomsensor.CO2: {14, 6, 1}, roomsensor.Temp: {0.18, 0.06, 100}, roomsensor.Humidity: {1.3, 0.35, 100},
	roomsensor.Lux: {0.05, 0.04, 10}, roomsensor.Sound: {0.6, 1.1, 10},
}

func newUnit(seed uint64, hardwareID string) unit {
	name := fnv.New64a()
	_, _ = name.Write([]byte(hardwareID)) // A hash never fails.
	u := unit{id: int64(name.Sum64())}    //nolint:gosec // A seed may wrap.
	d := newRNG(streamUnit, seed, u.id)
	u.phase = time.Duration(4+d.IntN(290)) * time.Second
	for m := range u.bias {
		u.bias[m] = d.around(0, sensors[m].bias)
	}
	if d.chance(0.1) {
		u.lacks = 1 << roomsensor.Sound
	}
	u.rssi = d.between(-98, -66)
	u.firmware = fmt.Sprintf("2.%d.%d", 14+d.IntN(4), d.IntN(3))
	return u
}

// The shares of measurements and of single values that fail at random.
const (
	lostMeasurements = 0.002
	lostValues       = 0.001
)

// sampler measures in rooms. It keeps the days of the last room, so that most measurements do not simulate them again.
type sampler struct {
	device  *Device
	day     int64
	days    days
	weather [2]float64 // at the start and at the end of the day; it is the same for all rooms
}

// measure returns the measurement of a device in a bucket. ok is false if it measures nothing. The result does not
// depend on what was measured before.
func (s *sampler) measure(d *Device, bucket time.Time) (m roomsensor.Measurement, ok bool) {
	clock := bucket.Unix() + clockAhead
	if day := clock / daySeconds; s.device != d || s.day != day {
		s.device, s.day = d, day
		s.days.fill(d, day)
		for i := range s.weather {
			s.weather[i] = newRNG(streamWeather, d.fleet, day+int64(i)).around(0, 1)
		}
	}
	part := float64(clock%daySeconds) / daySeconds
	weather := s.weather[0]*(1-part) + s.weather[1]*part
	slot := &s.days[slotsOfDay+clock%daySeconds*slotsOfHour/3600]
	r := newRNG(streamNoise, d.fleet, d.unit.id, clock)
	m.MeasuredAt = bucket.Add(d.unit.phase + time.Duration(r.IntN(5)-2)*time.Second)
	truth := d.room.truth(slot, clock, weather)
	for _, metric := range roomsensor.Metrics {
		blur := r.around(d.unit.bias[metric], sensors[metric].noise)
		if r.chance(lostValues) || d.unit.lacks&(1<<metric) != 0 {
			continue
		}
		x := truth[metric] + blur
		if metric == roomsensor.Lux {
			x = truth[metric] * (1 + blur)
		}
		least, most := metric.Range()
		steps := sensors[metric].steps
		m.Values.Set(metric, float32(math.Round(max(least, min(most, x))*steps)/steps))
	}
	return m, !slot.dark && !r.chance(lostMeasurements)
}

// take appends the measurements of a device in [from, to) to dst, oldest first.
func (s *sampler) take(dst []roomsensor.Measurement, d *Device, from, to time.Time) []roomsensor.Measurement {
	for bucket := roomsensor.BucketOf(from); bucket.Before(to); bucket = bucket.Add(roomsensor.BucketLength) {
		m, ok := s.measure(d, bucket)
		if ok && !m.MeasuredAt.Before(from) && m.MeasuredAt.Before(to) {
			dst = append(dst, m)
		}
	}
	return dst
}
