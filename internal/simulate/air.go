package simulate

import "math"

const (
	slotHours     = 1.0 / slotsOfHour
	outsideCO2    = 425 // parts per million
	openWindowAir = 7   // air changes an hour
	roomInertia   = 3.0 // hours in which a room takes over two thirds of a change of temperature
	darkBelow     = 180 // lux of daylight at which lamps go on
)

// air is the state of a room. It moves towards a balance that people, weather
// and ventilation set, and never jumps.
type air struct {
	co2    float64 // parts per million
	temp   float64 // degrees Celsius
	vapour float64 // hPa
	lux    float64
	sound  float64 // dB
}

// startingAir is where a room is put before its first day; a day later
// nothing is left of it.
func startingAir(r *room, w *weather) air {
	return air{co2: outsideCO2 + 40, temp: r.warm, vapour: w.damp * saturation(w.mean)}
}

// live moves the room on by one slot.
func (a *air) live(r *room, p *plan, w *weather, slot int) {
	people := float64(p.people[slot])
	sun := r.window * w.daylight(slot)
	changes := airChanges(r, p, slot)
	renewed := 1 - math.Exp(-changes*slotHours)

	balance := outsideCO2 + people*r.breath*1e6/(r.volume*changes)
	a.co2 += (balance - a.co2) * renewed
	damp := w.damp*saturation(w.outside(slot)) + people*r.moisture
	a.vapour += (damp - a.vapour) * renewed
	a.temp += (target(r, p, w, slot) + people*0.1 + sun*0.001 - a.temp) * (slotHours / roomInertia)
	if p.airing[slot] {
		a.temp += (w.outside(slot) - a.temp) * 0.03
	}
	a.lux, a.sound = sun, r.quiet
	if p.asleep[slot] || people == 0 {
		return
	}
	if sun < darkBelow {
		a.lux += r.lamps
	}
	a.sound = addUp(r.quiet, r.voice+10*math.Log10(people))
}

func airChanges(r *room, p *plan, slot int) float64 {
	switch {
	case p.airing[slot]:
		return openWindowAir
	case p.people[slot] > 0:
		return r.busyAir
	}
	return r.idleAir
}

// target is the temperature that heating or cooling holds, or the summer brings.
func target(r *room, p *plan, w *weather, slot int) float64 {
	held := r.cool
	if hour := slot / slotsOfHour; hour >= 6 && hour < 20 && p.weekday != 0 {
		held = r.warm
	}
	return max(held, min(w.mean+4+warmthCourse[slot]/2, r.ceiling))
}

// addUp adds sounds that are given in dB.
func addUp(a, b float64) float64 {
	return 10 * math.Log10(math.Pow(10, a/10)+math.Pow(10, b/10))
}

// humidity is relative, in percent.
func (a *air) humidity() float64 { return 100 * a.vapour / saturation(a.temp) }
