package simulate

import "math"

// All rooms stand in one place: 50 degrees north, by a clock of one hour ahead
// of UTC the whole year, so that no time zone database is needed.
const (
	latitude       = 50 * math.Pi / 180
	clockAhead     = 3600 // seconds
	solarNoon      = 12.5 // hours by that clock
	yearDays       = 365.25
	coldestDay     = 20  // of the year
	meanOutside    = 10  // degrees Celsius over the year
	seasonOutside  = 9   // half the way from the coldest to the warmest day
	daySwing       = 4   // half the way from night to afternoon
	warmestHour    = 15  // of the day
	spellDeviation = 4.5 // warm and cold spells, degrees Celsius
	clearSkyLux    = 95_000
)

// weather is what one day outside is like; it is the same for every room of a
// seed.
type weather struct {
	mean             float64 // degrees Celsius
	clear            float64 // share of daylight that clouds leave, 0 to 1
	damp             float64 // relative humidity outside, 0 to 1
	sunBase, sunHigh float64 // sine of the sun's elevation = sunBase + sunHigh * cos(hour angle)
}

// weatherOn is the weather of a day, counted from 1970 by the rooms' clock.
func weatherOn(d *dice, seed uint64, day int64) weather {
	year := math.Mod(float64(day), yearDays)
	d.reset(seed, streamWeather, uint64(day)) //nolint:gosec // A day's number only names a place.
	clouds := d.Float64()
	damp := d.around(0.78, 0.06)
	var spell float64
	for near := day - 2; near <= day+2; near++ { // Spells last for days.
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

// The course of the sun and of the temperature over the 288 slots of a day.
var sunCourse, warmthCourse = func() (sun, warmth [slotsOfDay]float64) {
	for slot := range slotsOfDay {
		hour := float64(slot) / slotsOfHour
		sun[slot] = math.Cos(2 * math.Pi * (hour - solarNoon) / 24)
		warmth[slot] = daySwing * math.Cos(2*math.Pi*(hour-warmestHour)/24)
	}
	return sun, warmth
}()

// outside is the temperature in degrees Celsius.
func (w *weather) outside(slot int) float64 { return w.mean + warmthCourse[slot] }

// daylight is the light under the open sky in lux.
func (w *weather) daylight(slot int) float64 {
	height := max(0, w.sunBase+w.sunHigh*sunCourse[slot])
	return clearSkyLux * w.clear * height * (0.55 + 0.45*height)
}

// saturation is the pressure of water vapour at 100 percent of relative
// humidity, in hPa (the Magnus formula).
func saturation(celsius float64) float64 {
	return 6.112 * math.Exp(17.62*celsius/(243.12+celsius))
}
