// Package simulate generates plausible data of room sensors, for the demo, tests and load. It is deterministic: the
// same seed and the same window give the same bytes, on any day.
//
// A Device measures one room. People come and go by the time of day and the day of the week; they exhale CO2 and
// moisture, switch lamps on and make noise. Ventilation, heating, sun and the season have the opposite effect. The
// sensor adds bias, noise, rounding, faults and gaps. A Plan turns the measurements of a Fleet into uploads, in one of
// the Modes.
//
//   - plan.go: Mode, Plan and the order in which devices send; modes.go: how each mode sends
//   - upload.go: Upload, its wire format, and LiveUploads
//   - device.go: Fleet, Device, and the sampler that simulates a device slot by slot
//   - unit.go: the sensor; room.go: rooms and the people in them; air.go: the air in a room, and the weather
//   - random.go: reproducible random numbers
//   - send/: sends uploads to standard output, NATS or a receiver
package simulate
