// Package simulate makes up believable data of room sensors: the demo, tests
// and load come from it. It is pure and seeded: the same seed and the same
// window give the same bytes, on whichever day they are made.
//
// A Device measures one room. People come and go by the clock and the day of
// the week, breathe out CO2 and moisture, switch lamps on and make noise;
// ventilation, heating, sun and the season pull the other way. Its sensor then
// adds bias, noise, rounding, faults and gaps.
//
// A Plan turns the measurements of a Fleet into uploads as one of the Modes
// says.
package simulate
