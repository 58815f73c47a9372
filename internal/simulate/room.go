package simulate

import (
	"math"

	"roomsensor/internal/roomsensor"
)

// room is the properties of a room.
type room struct {
	breath float64 // CO2 that all its people add in the end, ppm
	lag    float64 // hours in which the air follows two thirds of a change
	temp   float64 // mean of the year, degrees Celsius
	window float64 // light of the sun at its highest, lux
	lamps  float64 // lux
	quiet  float64 // dB of the empty room
	voices float64 // dB that all its people add while they are awake
	visits []visit
	sealed bool // nobody opens a window
}

// visit is a time at which people are in a room, in hours of the day. A visit that ends after 24 continues on the next
// day. A later visit of a list replaces an earlier one while both last.
type visit struct {
	from, to float64
	days     uint8 // one bit per day of the week; bit 0 is Sunday
	asleep   bool
}

const (
	workdays uint8 = 0b0111110
	saturday uint8 = 0b1000000
	everyDay uint8 = 0b1111111
)

// rooms are the kinds of rooms, in the order in which the devices of a fleet have them.
var rooms = []room{
	{ // An office.
		breath: 480, lag: 0.7, temp: 21.5, window: 900, lamps: 420, quiet: 34, voices: 17,
		visits: []visit{{8.5, 12.3, workdays, false}, {13, 17.3, workdays, false}},
	},
	{ // A meeting room.
		breath: 750, lag: 0.5, temp: 21, window: 500, lamps: 480, quiet: 33, voices: 21,
		visits: []visit{
			{9, 10, workdays, false},
			{10.6, 12, workdays, false},
			{13.6, 15, workdays, false},
			{15.7, 16.8, workdays, false},
		},
	},
	{ // A bedroom.
		breath: 620, lag: 1.2, temp: 20, window: 700, lamps: 140, quiet: 30, voices: 9,
		visits: []visit{{19.2, 31.2, everyDay, false}, {22.4, 30.7, everyDay, true}},
	},
	{ // A gym.
		breath: 560, lag: 0.4, temp: 19.2, window: 350, lamps: 520, quiet: 38, voices: 24,
		visits: []visit{{6.6, 8.4, workdays, false}, {15.5, 18.4, workdays, false}, {9.5, 11.8, saturday, false}},
	},
	{ // A locker room.
		breath: 420, lag: 0.3, temp: 22.5, window: 90, lamps: 300, quiet: 40, voices: 20,
		visits: []visit{
			{6.2, 6.7, workdays, false},
			{8.4, 9, workdays, false},
			{15, 15.6, workdays, false},
			{18.4, 19.2, workdays, false},
			{9.1, 9.6, saturday, false},
			{11.8, 12.5, saturday, false},
		},
	},
	{ // A dining hall.
		breath: 520, lag: 0.6, temp: 21.5, window: 1100, lamps: 260, quiet: 36, voices: 22,
		visits: []visit{{7.2, 8.2, everyDay, false}, {12, 13.2, everyDay, false}, {18.5, 20.5, everyDay, false}},
	},
}

// newRoom draws a room of a kind; rooms of one kind differ slightly.
func newRoom(kind int, d rng) room {
	r := rooms[kind]
	for _, trait := range []*float64{&r.breath, &r.lag, &r.window, &r.lamps} {
		*trait *= d.between(0.85, 1.15)
	}
	r.temp += d.around(0, 0.4)
	r.quiet += d.around(0, 1)
	return r
}

const (
	slotsOfHour = 12
	slotsOfDay  = 24 * slotsOfHour
	daySeconds  = 24 * 60 * 60
	// clockAhead is the time zone of all rooms, in seconds: an hour ahead of UTC without daylight saving time, so that no
	// time zone database is needed.
	clockAhead = 3600
	outsideCO2 = 425 // ppm
	airedLag   = 0.1 // hours, with an open window
)

// slot is a room in one bucket.
type slot struct {
	people float64 // share of its people who are in it
	asleep bool
	aired  bool // a window is open
	dark   bool // the device has no power
	co2    float64
}

// days is two days of a room in slots, so that the second one does not depend on the state at the start of the first.
type days [2 * slotsOfDay]slot

// during calls change for each slot between two hours of the days.
func (s *days) during(from, to float64, change func(*slot)) {
	for i := max(0, int(from*slotsOfHour)); i < min(len(s), int(to*slotsOfHour)); i++ {
		change(&s[i])
	}
}

// fill simulates a day, counted from 1970, and the day before it.
func (s *days) fill(d *Device, day int64) {
	*s = days{}
	s.draw(d, day-1, 0)
	s.draw(d, day, 24)
	co2 := float64(outsideCO2)
	for i := range s {
		target, lag := outsideCO2+d.room.breath*s[i].people, d.room.lag
		if s[i].aired && !d.room.sealed {
			target, lag = outsideCO2, airedLag
		}
		co2 += (target - co2) * (1 - math.Exp(-1/(slotsOfHour*lag)))
		s[i].co2 = co2
	}
}

// draw draws what happens on a day that begins at an hour of the days.
func (s *days) draw(d *Device, day int64, hour float64) {
	r := newRNG(streamPeople, d.fleet, d.index, day)
	weekday := (day + 4) % 7 // Day 0 was a Thursday.
	people, absent := r.between(0.8, 1), r.chance(0.05)
	for _, v := range d.room.visits {
		from, to := hour+r.around(v.from, 0.2), hour+r.around(v.to, 0.2)
		if absent || v.days>>weekday&1 == 0 {
			continue
		}
		s.during(from, to, func(s *slot) { s.people, s.asleep = people, v.asleep })
	}
	if r.chance(0.35) {
		at := hour + r.between(7, 20)
		s.during(at, at+r.between(0.1, 0.6), func(s *slot) { s.aired = true })
	}
	if r.chance(0.03) { // Somebody unplugs the device.
		at := hour + r.between(0, 17)
		s.during(at, at+r.between(0.2, 7), func(s *slot) { s.dark = true })
	}
}

// truth returns the values in a room at a time of the clock of the rooms, in seconds since 1970. The weather is in
// standard deviations: above 0, it is warm, damp and clear for the season.
func (r *room) truth(s *slot, clock int64, weather float64) (values [roomsensor.MetricCount]float64) {
	hour := float64(clock%daySeconds) / 3600
	course := func(warmest, period, at float64) float64 { return math.Cos(2 * math.Pi * (at - warmest) / period) }
	season := course(198, 365.25, math.Mod(float64(clock)/daySeconds, 365.25)) // 1 in July, -1 in January.
	exhaled := s.co2 - outsideCO2

	values[roomsensor.CO2] = s.co2
	values[roomsensor.Temp] = r.temp + 1.6*season + 0.5*weather + 0.7*course(16, 24, hour) + 0.0009*exhaled
	values[roomsensor.Humidity] = 43 + 7*season + 2*weather + 0.004*exhaled
	// The sun is higher in summer; clouds take up to two thirds of the light.
	clouds := max(0.33, min(1, 0.7+0.2*weather))
	values[roomsensor.Lux] = r.window * clouds * max(0, 0.3*season+0.65*course(12.5, 24, hour))
	values[roomsensor.Sound] = r.quiet
	if s.people > 0 && !s.asleep {
		values[roomsensor.Lux] = max(values[roomsensor.Lux], r.lamps)
		values[roomsensor.Sound] += r.voices * s.people
	}
	return values
}
