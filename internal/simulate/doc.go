// Package simulate generates plausible data of room sensors, for the demo, tests and load. It is deterministic: the
// same seed and the same window give the same bytes, on any day.
//
// A Device measures one room. People come and go by the time of day and the day of the week: CO2 rises and falls with
// them, they switch lamps on and make noise. Temperature, humidity and daylight follow the hour and the season. The
// sensor adds bias, noise, rounding and gaps. A Plan turns the measurements of a Fleet into uploads, in one of the
// Modes.
//
//   - plan.go: Mode, Plan and the order in which devices send; sender.go: how a device sends in each mode
//   - upload.go: Upload, its wire format, and LiveUploads
//   - device.go: Fleet, Device, and what its unit measures; room.go: rooms, the people in them, and the weather
//   - random.go: reproducible random numbers
//   - send/: sends uploads to standard output, NATS or a receiver
package simulate
