package simulate

// Kind is the kind of a room.
type Kind string

// The kinds of rooms, in the order in which a fleet uses them.
const (
	Office      Kind = "office"
	MeetingRoom Kind = "meeting room"
	Bedroom     Kind = "bedroom"
	Gym         Kind = "gym"
	LockerRoom  Kind = "locker room"
	Lounge      Kind = "lounge"
)

// Kinds lists all kinds.
var Kinds = []Kind{Office, MeetingRoom, Bedroom, Gym, LockerRoom, Lounge}

// room is the properties of a room.
type room struct {
	volume    float64 // cubic metres
	idleAir   float64 // air changes per hour of an empty room
	busyAir   float64 // air changes per hour with people in it
	breath    float64 // CO2 of one person, cubic metres per hour
	moisture  float64 // vapour pressure that one person adds, hPa
	warm      float64 // degrees Celsius by day
	cool      float64 // degrees Celsius at night and on Sundays in winter
	ceiling   float64 // maximum with cooling in summer, degrees Celsius
	window    float64 // share of the daylight that reaches the sensor
	lamps     float64 // lux
	quiet     float64 // dB of an empty room
	voice     float64 // dB of one person who is awake
	mostInUse int     // people
	sealed    bool    // nobody opens a window
	people    func(*schedule, *rng, *room)
}

var rooms = map[Kind]room{
	Office: {
		volume: 60, idleAir: 0.6, busyAir: 1.6, breath: 0.018, moisture: 0.5, warm: 21.5, cool: 18.5, ceiling: 26,
		window: 0.010, lamps: 420, quiet: 34, voice: 47, mostInUse: 4, people: officeHours,
	},
	MeetingRoom: {
		volume: 75, idleAir: 0.7, busyAir: 2.6, breath: 0.019, moisture: 0.5, warm: 21, cool: 18.5, ceiling: 25,
		window: 0.006, lamps: 480, quiet: 33, voice: 51, mostInUse: 9, people: meetings,
	},
	Bedroom: {
		volume: 38, idleAir: 0.5, busyAir: 0.7, breath: 0.013, moisture: 0.9, warm: 20.5, cool: 18, ceiling: 27,
		window: 0.008, lamps: 140, quiet: 30, voice: 45, mostInUse: 2, people: nights,
	},
	Gym: {
		volume: 700, idleAir: 0.5, busyAir: 3.2, breath: 0.055, moisture: 0.25, warm: 19, cool: 16.5, ceiling: 25,
		window: 0.004, lamps: 520, quiet: 38, voice: 58, mostInUse: 18, people: trainings,
	},
	LockerRoom: {
		volume: 140, idleAir: 1.2, busyAir: 5, breath: 0.024, moisture: 0.7, warm: 22, cool: 20, ceiling: 26,
		window: 0.001, lamps: 300, quiet: 40, voice: 55, mostInUse: 16, people: changings,
	},
	Lounge: {
		volume: 180, idleAir: 0.6, busyAir: 2.2, breath: 0.019, moisture: 0.4, warm: 21.5, cool: 19, ceiling: 26,
		window: 0.012, lamps: 260, quiet: 36, voice: 53, mostInUse: 10, people: meals,
	},
}

// newRoom draws a room of a kind; rooms of one kind differ slightly.
func newRoom(kind Kind, d *rng) room {
	r := rooms[kind]
	for _, trait := range []*float64{&r.volume, &r.idleAir, &r.busyAir, &r.window, &r.lamps} {
		*trait *= d.between(0.75, 1.3)
	}
	shift := d.around(0, 0.4)
	r.warm += shift
	r.cool += shift
	r.quiet += d.around(0, 1.5)
	r.mostInUse = max(1, r.mostInUse-d.IntN(1+r.mostInUse/3))
	return r
}

const (
	slotsOfHour = 12
	slotsOfDay  = 24 * slotsOfHour
)

// schedule is what happens in a room on one day, in slots of 5 minutes.
type schedule struct {
	weekday int // 0 is Sunday
	people  [slotsOfDay]uint8
	asleep  [slotsOfDay]bool
	airing  [slotsOfDay]bool // a window is open
	dark    [slotsOfDay]bool // the device has no power
}

func (p *schedule) weekend() bool { return p.weekday == 0 || p.weekday == 6 }

// during calls f for each slot between two hours of the day.
func during(from, to float64, f func(slot int)) {
	for slot := max(0, int(from*slotsOfHour)); slot < min(slotsOfDay, int(to*slotsOfHour)); slot++ {
		f(slot)
	}
}

// enter adds people to the room between two hours of the day.
func (p *schedule) enter(from, to float64, people int) {
	during(from, to, func(slot int) { p.people[slot] += uint8(people) }) //nolint:gosec // At most 18.
}

// fill draws the schedule of a day.
func (p *schedule) fill(day int64, d *rng, r *room) {
	*p = schedule{weekday: int((day + 4) % 7)} // Day 0 was a Thursday.
	r.people(p, d, r)
	if d.chance(0.35) {
		at := d.between(7, 20)
		during(at, at+d.between(0.1, 0.6), func(slot int) { p.airing[slot] = true })
	}
	if d.chance(0.03) { // Somebody unplugs the device.
		at := d.between(0, 23)
		during(at, at+d.between(0.2, 7), func(slot int) { p.dark[slot] = true })
	}
}

// officeHours: each person comes, goes for lunch and leaves.
func officeHours(p *schedule, d *rng, r *room) {
	presence := 0.9
	if p.weekend() {
		presence = 0.04
	}
	for range r.mostInUse {
		if !d.chance(presence) {
			continue
		}
		lunch := d.around(12.3, 0.3)
		p.enter(d.around(8.5, 0.5), lunch, 1)
		p.enter(lunch+d.between(0.4, 1), d.around(17.2, 0.7), 1)
	}
}

// meetings: one meeting after another, with breaks.
func meetings(p *schedule, d *rng, r *room) {
	if p.weekend() && !d.chance(0.08) {
		return
	}
	for hour := d.between(8.2, 10); hour < 17; hour += d.between(0.2, 1.6) {
		length := []float64{0.5, 1, 1, 1.5}[d.IntN(4)]
		p.enter(hour, hour+length, min(r.mostInUse, 2+d.IntN(r.mostInUse)))
		hour += length
	}
}

// nights: people are in the room from the evening to the morning, mostly asleep.
func nights(p *schedule, d *rng, r *room) {
	if d.chance(0.06) {
		return // Nobody is at home.
	}
	late := 0.0
	if p.weekend() {
		late = 1.4
	}
	people := 1 + d.IntN(r.mostInUse)
	rise := d.around(6.6+late, 0.4)
	home, bed := d.around(19.2, 1), d.around(22.6+late/3, 0.4)
	p.enter(0, rise+d.between(0.3, 0.9), people)
	p.enter(home, 24, people)
	during(0, rise, func(slot int) { p.asleep[slot] = true })
	during(bed, 24, func(slot int) { p.asleep[slot] = true })
}

// session is a training or a meal, in hours of the day.
type session struct{ from, to float64 }

// sessions returns the trainings of a day of the week.
func sessions(weekday int) []session {
	switch weekday {
	case 0:
		return nil
	case 6:
		return []session{{9.5, 11.8}}
	}
	return []session{{6.6, 8.4}, {15.5, 18.4}}
}

// trainings: people come and leave one by one.
func trainings(p *schedule, d *rng, r *room) {
	for _, s := range sessions(p.weekday) {
		for range r.mostInUse {
			if d.chance(0.75) {
				p.enter(d.around(s.from, 0.15), d.around(s.to, 0.25), 1)
			}
		}
	}
	if d.chance(0.4) {
		at := d.between(11, 14)
		p.enter(at, at+d.between(0.5, 1.2), 1+d.IntN(3))
	}
}

// changings: people change their clothes before and after the trainings.
func changings(p *schedule, d *rng, r *room) {
	for _, s := range sessions(p.weekday) {
		for range r.mostInUse {
			if !d.chance(0.75) {
				continue
			}
			in, out := d.around(s.from-0.3, 0.1), d.around(s.to+0.1, 0.15)
			p.enter(in, in+d.between(0.15, 0.4), 1)
			p.enter(out, out+d.between(0.3, 0.8), 1)
		}
	}
}

// meals: people eat together on each day of the week.
func meals(p *schedule, d *rng, r *room) {
	for _, s := range []session{{7.2, 8.2}, {12, 13.2}, {18.5, 20.5}} {
		for range r.mostInUse {
			if d.chance(0.6) {
				at := d.around(s.from, 0.3)
				p.enter(at, at+d.between(0.4, s.to-s.from), 1)
			}
		}
	}
}
