package fleet

import (
	"crypto/md5" //nolint:gosec // It derives device ids in Go and in SQL; it protects nothing.
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// offlineOneIn is the share of the devices that are offline at any time.
const offlineOneIn = 100

// plan says what each device sends and when. It is arithmetic on the options: a million devices take no memory.
//
// The devices take turns. Turn n is due n intervals after the start, and all devices have had a turn after 5 minutes,
// which is a round. In each round, a device sends its reading of the bucket before, unless it is offline. When it
// returns, it sends all that it missed in one upload. The first devices may be late ones, which send nothing in their
// turns, but all that they missed at once.
type plan struct {
	devices, teams int
	seed           uint64
	outage         int       // rounds for which a device is offline
	late, missed   int       // number of late devices, and of the readings of each of them
	start          time.Time // boundary of a bucket; the reading of round 0 is in the bucket before it
	turns          int       // of all devices until the end
	step, inverse  int       // the order of the devices in a round, see device
}

// stride is the least distance of the numbers of two devices that follow one another: a prime, so that neither their
// units nor their teams are neighbors.
const stride = 7919

func newPlan(o *Options, now time.Time) *plan {
	p := &plan{
		devices: o.Devices, teams: o.Teams, seed: o.Seed, start: now.UTC().Truncate(roomsensor.BucketLength),
		outage: int(o.Outage / roomsensor.BucketLength), late: o.Late, missed: int(o.LateFor / roomsensor.BucketLength),
		turns: int(o.Duration.Seconds() / roomsensor.BucketLength.Seconds() * float64(o.Devices)),
		step:  stride,
	}
	n := big.NewInt(int64(p.devices))
	inverse := new(big.Int)
	for inverse.ModInverse(big.NewInt(int64(p.step)), n) == nil {
		p.step++ // It has a divisor in common with the number of devices.
	}
	p.inverse = int(inverse.Int64())
	return p
}

// due returns when a turn is due, after the start.
func (p *plan) due(turn int) time.Duration {
	part := time.Duration(turn%p.devices) * roomsensor.BucketLength / time.Duration(p.devices)
	return time.Duration(turn/p.devices)*roomsensor.BucketLength + part
}

// device returns the device and the round of a turn.
func (p *plan) device(turn int) (device, round int) {
	return turn % p.devices * p.step % p.devices, turn / p.devices
}

// rounds returns the number of turns of a device.
func (p *plan) rounds(device int) int {
	rounds := p.turns / p.devices
	if device*p.inverse%p.devices < p.turns%p.devices {
		rounds++
	}
	return rounds
}

// sends returns how many readings a device sends in a round: those of the rounds until this one. While it is offline it
// sends none.
func (p *plan) sends(device, round int) int {
	if device < p.late {
		return 0
	}
	phase := (device + round) % (offlineOneIn * p.outage)
	switch {
	case phase < p.outage:
		return 0
	case phase == p.outage:
		return p.outage + 1
	}
	return 1
}

func (p *plan) team(device int) int { return device % p.teams }

// deviceID returns the id of a device, which deviceIDSQL computes too. Ids are random, as those of real devices are, so
// that neighbors in time are not neighbors in an index.
func (p *plan) deviceID(device int) uuid.UUID {
	return md5.Sum(fmt.Appendf(nil, "%d device %d", p.seed, device)) //nolint:gosec // See the import.
}

// deviceIDSQL is deviceID of the number i, with the seed as the first parameter.
const deviceIDSQL = "md5($1::text || ' device ' || i)::uuid"

// hardwareFormat is the format of a hardware id; hardwareIDSQL computes the same from the number i.
const (
	hardwareFormat = "dev:9%014d"
	hardwareIDSQL  = "'dev:9' || lpad(i::text, 14, '0')"
)

// bucket returns the start of the bucket of a round's reading.
func (p *plan) bucket(round int) time.Time {
	return p.start.Add(time.Duration(round-1) * roomsensor.BucketLength)
}

// historyEnd returns the end of the readings that are stored before the trial. It is the start of an hour, before all
// readings that devices send.
func (p *plan) historyEnd() time.Time { return p.bucket(-max(p.outage, p.missed)).Truncate(time.Hour) }

// scaled are the values of a reading as integers: in the units of their resolutions, and the seconds from the start of
// the bucket to the measurement. Checksums are exact because they use integers.
type scaled struct{ co2, temp, humidity, lux, sound, offset int64 }

// values returns the values of a device's reading of a round.
func (p *plan) values(device, round int) scaled {
	x := p.seed ^ uint64(device)<<24 ^ uint64(p.bucket(round).Unix()) //nolint:gosec // A seed may overflow.
	below := func(n uint64) int64 {
		// SplitMix64.
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return int64((z ^ z>>31) % n) //nolint:gosec // Less than n.
	}
	return scaled{
		co2: 400 + below(900), temp: 1800 + below(800), humidity: 2000 + below(4000), lux: below(9000),
		sound: 300 + below(400), offset: below(300),
	}
}

// measurement returns a device's reading of a round as the device sends it.
func (p *plan) measurement(device, round int) roomsensor.Measurement {
	v := p.values(device, round)
	m := roomsensor.Measurement{MeasuredAt: p.bucket(round).Add(time.Duration(v.offset) * time.Second)}
	m.Values.Set(roomsensor.CO2, float32(v.co2))
	m.Values.Set(roomsensor.Temp, float32(v.temp)/100)
	m.Values.Set(roomsensor.Humidity, float32(v.humidity)/100)
	m.Values.Set(roomsensor.Lux, float32(v.lux)/10)
	m.Values.Set(roomsensor.Sound, float32(v.sound)/10)
	return m
}

// upload returns what a device sends in a round, in the wire format; nil while it is offline.
func (p *plan) upload(device, round int) []byte {
	n := p.sends(device, round)
	if n == 0 {
		return nil
	}
	readings := make([]roomsensor.Measurement, 0, n)
	for i := round - n + 1; i <= round; i++ {
		readings = append(readings, p.measurement(device, i))
	}
	return p.message(device, round, readings)
}

// sum is the number of readings of a device and a checksum of them.
type sum struct{ count, check int64 }

// weights is a prime: a reading counts by its bucket, so that values in the wrong bucket change the checksum.
const weights = 1009

func (s *sum) add(bucket time.Time, v scaled) {
	s.count++
	weight := bucket.Unix()/int64(roomsensor.BucketLength.Seconds())%weights + 1
	s.check += weight * (v.co2 + 3*v.temp + 5*v.humidity + 7*v.lux + 11*v.sound + 13*v.offset)
}

// sumSQL computes sum from the readings of a device. A missing value counts as -1.
const sumSQL = `count(*), coalesce(sum((extract(epoch FROM bucket_at)::bigint / 300 % 1009 + 1) * (
	coalesce(co2_ppm::bigint, -1) + 3 * coalesce(round(temp_c::float8 * 100)::bigint, -1) +
	5 * coalesce(round(humidity_pct::float8 * 100)::bigint, -1) + 7 * coalesce(round(lux::float8 * 10)::bigint, -1) +
	11 * coalesce(round(spl_db::float8 * 10)::bigint, -1) +
	13 * extract(epoch FROM measured_at - bucket_at)::bigint)), 0)::bigint`

// expected returns the sum of all readings that a device sends.
func (p *plan) expected(device int) (s sum) {
	if device < p.late {
		for round := 1 - p.missed; round <= 0; round++ {
			s.add(p.bucket(round), p.values(device, round))
		}
	}
	for round := range p.rounds(device) {
		for i := round - p.sends(device, round) + 1; i <= round; i++ {
			s.add(p.bucket(i), p.values(device, i))
		}
	}
	return s
}

// teamSize returns the number of devices of a team.
func (p *plan) teamSize(team int) int { return (p.devices - team + p.teams - 1) / p.teams }
