package simulate

import (
	"math"
)

const (
	slotHours     = 1.0 / slotsOfHour
	outsideCO2    = 425 // parts per million
	openWindowAir = 7   // air changes an hour
	roomInertia   = 3.0 // hours until a room has followed two thirds of a change of temperature
	darkBelow     = 180 // lux of daylight below which lamps are on
)

// air is the state of a room. It approaches an equilibrium of people, weather and ventilation.
type air struct {
	co2    float64 // parts per million
	temp   float64 // degrees Celsius
	vapour float64 // hPa
	lux    float64
	sound  float64 // dB
}

// initialAir returns the state of a room one day before it is measured; it has no effect after that day.
func initialAir(r *room, w *weather) air {
	return air{co2: outsideCO2 + 40, temp: r.warm, vapour: w.damp * saturation(w.mean)}
}

// step advances the room by one slot.
func (a *air) step(r *room, p *schedule, w *weather, slot int) {
	people := float64(p.people[slot])
	sun := r.window * w.daylight(slot)
	changes := airChanges(r, p, slot)
	renewed := 1 - math.Exp(-changes*slotHours)

	balance := outsideCO2 + people*r.breath*1e6/(r.volume*changes)
	a.co2 += (balance - a.co2) * renewed
	damp := w.damp*saturation(w.outside(slot)) + people*r.moisture
	a.vapour += (damp - a.vapour) * renewed
	a.temp += (targetTemp(r, p, w, slot) + people*0.1 + sun*0.001 - a.temp) * (slotHours / roomInertia)
	if p.airing[slot] && !r.sealed {
		a.temp += (w.outside(slot) - a.temp) * 0.03
	}
	a.lux, a.sound = sun, r.quiet
	if p.asleep[slot] || people == 0 {
		return
	}
	if sun < darkBelow {
		a.lux += r.lamps
	}
	a.sound = addSounds(r.quiet, r.voice+10*math.Log10(people))
}

func airChanges(r *room, p *schedule, slot int) float64 {
	switch {
	case p.airing[slot] && !r.sealed:
		return openWindowAir
	case p.people[slot] > 0:
		return r.busyAir
	}
	return r.idleAir
}

// targetTemp returns the temperature that heating, cooling and the summer lead to.
func targetTemp(r *room, p *schedule, w *weather, slot int) float64 {
	held := r.cool
	if hour := slot / slotsOfHour; hour >= 6 && hour < 20 && p.weekday != 0 {
		held = r.warm
	}
	return max(held, min(w.mean+4+warmthCourse[slot]/2, r.ceiling))
}

// addSounds adds two sound levels in dB.
func addSounds(a, b float64) float64 {
	return 10 * math.Log10(math.Pow(10, a/10)+math.Pow(10, b/10))
}

// humidity returns the relative humidity in percent.
func (a *air) humidity() float64 { return 100 * a.vapour / saturation(a.temp) }

// All rooms are at 50 degrees north, in a time zone one hour ahead of UTC without daylight saving time, so that no time
// zone database is needed.
const (
	latitude       = 50 * math.Pi / 180
	clockAhead     = 3600 // seconds
	solarNoon      = 12.5 // hours by that clock
	yearDays       = 365.25
	coldestDay     = 20  // of the year
	meanOutside    = 10  // degrees Celsius over the year
	seasonOutside  = 9   // half the difference between the coldest and the warmest day
	daySwing       = 4   // half the difference between night and afternoon
	warmestHour    = 15  // of the day
	spellDeviation = 4.5 // warm and cold spells, degrees Celsius
	clearSkyLux    = 95_000
)

// weather is the weather of one day; it is the same for all rooms of a seed.
type weather struct {
	mean             float64 // degrees Celsius
	clear            float64 // share of daylight that passes the clouds, 0 to 1
	damp             float64 // relative humidity outside, 0 to 1
	sunBase, sunHigh float64 // sine of the sun's elevation = sunBase + sunHigh * cos(hour angle)
}

// weatherOn returns the weather of a day; days are counted from 1970 in the time zone of the rooms.
func weatherOn(d *rng, seed uint64, day int64) weather {
	year := math.Mod(float64(day), yearDays)
	d.reset(seed, streamWeather, uint64(day)) //nolint:gosec // A seed may wrap.
	clouds := d.Float64()
	damp := d.around(0.78, 0.06)
	var spell float64
	for near := day - 2; near <= day+2; near++ { // Warm and cold spells last for days.
		d.reset(seed, streamWeather, uint64(near), 1) //nolint:gosec // As above.
		spell += d.NormFloat64()
	}
	tilt := -23.44 * math.Pi / 180 * math.Cos(2*math.Pi*(year+10)/yearDays)
	return weather{
		mean: meanOutside - seasonOutside*math.Cos(2*math.Pi*(year-coldestDay)/yearDays) +
			spellDeviation*spell/math.Sqrt(5),
		clear:   1 - 0.8*clouds*clouds,
		damp:    damp,
		sunBase: math.Sin(latitude) * math.Sin(tilt),
		sunHigh: math.Cos(latitude) * math.Cos(tilt),
	}
}

// sunCourse and warmthCourse are the sun and the temperature over the 288 slots of a day.
var sunCourse, warmthCourse = func() (sun, warmth [slotsOfDay]float64) {
	for slot := range slotsOfDay {
		hour := float64(slot) / slotsOfHour
		sun[slot] = math.Cos(2 * math.Pi * (hour - solarNoon) / 24)
		warmth[slot] = daySwing * math.Cos(2*math.Pi*(hour-warmestHour)/24)
	}
	return sun, warmth
}()

// outside returns the outside temperature in degrees Celsius.
func (w *weather) outside(slot int) float64 { return w.mean + warmthCourse[slot] }

// daylight returns the light outside in lux.
func (w *weather) daylight(slot int) float64 {
	height := max(0, w.sunBase+w.sunHigh*sunCourse[slot])
	return clearSkyLux * w.clear * height * (0.55 + 0.45*height)
}

// saturation returns the vapour pressure at 100 percent relative humidity, in hPa (Magnus formula).
func saturation(celsius float64) float64 {
	return 6.112 * math.Exp(17.62*celsius/(243.12+celsius))
}
