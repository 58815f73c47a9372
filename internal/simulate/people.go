package simulate

const (
	slotsOfHour = 12
	slotsOfDay  = 24 * slotsOfHour
)

// plan is what happens in a room on one day, by slots of 5 minutes.
type plan struct {
	weekday int // 0 is Sunday
	people  [slotsOfDay]uint8
	asleep  [slotsOfDay]bool
	airing  [slotsOfDay]bool // a window stands open
	dark    [slotsOfDay]bool // the device has no power and measures nothing
}

func (p *plan) weekend() bool { return p.weekday == 0 || p.weekday == 6 }

// during calls f with the slots between two hours of the day.
func during(from, to float64, f func(slot int)) {
	for slot := max(0, int(from*slotsOfHour)); slot < min(slotsOfDay, int(to*slotsOfHour)); slot++ {
		f(slot)
	}
}

// enter brings people into the room between two hours of the day.
func (p *plan) enter(from, to float64, people int) {
	during(from, to, func(slot int) { p.people[slot] += uint8(people) }) //nolint:gosec // At most 18.
}

// fill draws a day of the room.
func (p *plan) fill(day int64, d *dice, r *room) {
	*p = plan{weekday: int((day + 4) % 7)} // Day 0 was a Thursday.
	r.people(p, d, r)
	if d.chance(0.35) {
		at := d.between(7, 20)
		during(at, at+d.between(0.1, 0.6), func(slot int) { p.airing[slot] = true })
	}
	if d.chance(0.03) { // Somebody needed the socket.
		at := d.between(0, 23)
		during(at, at+d.between(0.2, 7), func(slot int) { p.dark[slot] = true })
	}
}

// officeHours has each person come, go for lunch and leave.
func officeHours(p *plan, d *dice, r *room) {
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

// meetings follow one another with breaks between them.
func meetings(p *plan, d *dice, r *room) {
	if p.weekend() && !d.chance(0.08) {
		return
	}
	for hour := d.between(8.2, 10); hour < 17; hour += d.between(0.2, 1.6) {
		length := []float64{0.5, 1, 1, 1.5}[d.IntN(4)]
		p.enter(hour, hour+length, min(r.mostInUse, 2+d.IntN(r.mostInUse)))
		hour += length
	}
}

// nights has people asleep over midnight and awake around it.
func nights(p *plan, d *dice, r *room) {
	if d.chance(0.06) {
		return // Away.
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

// session is a training; it starts an hour earlier or later by the day.
type session struct{ from, to float64 }

// sessions are those of a day of the week.
func sessions(weekday int) []session {
	switch weekday {
	case 0:
		return nil
	case 6:
		return []session{{9.5, 11.8}}
	}
	return []session{{6.6, 8.4}, {15.5, 18.4}}
}

// trainings has people come in ones and twos and leave likewise.
func trainings(p *plan, d *dice, r *room) {
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

// changings are before and after the trainings.
func changings(p *plan, d *dice, r *room) {
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

// meals bring people on every day of the week.
func meals(p *plan, d *dice, r *room) {
	for _, s := range []session{{7.2, 8.2}, {12, 13.2}, {18.5, 20.5}} {
		for range r.mostInUse {
			if d.chance(0.6) {
				at := d.around(s.from, 0.3)
				p.enter(at, at+d.between(0.4, s.to-s.from), 1)
			}
		}
	}
}
