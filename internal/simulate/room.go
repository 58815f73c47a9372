package simulate

// Kind is the kind of a room.
type Kind string

// The kinds of rooms. A fleet goes through them in this order.
const (
	Office      Kind = "office"
	MeetingRoom Kind = "meeting room"
	Bedroom     Kind = "bedroom"
	Gym         Kind = "gym"
	LockerRoom  Kind = "locker room"
	Lounge      Kind = "lounge"
)

// Kinds lists every kind.
var Kinds = []Kind{Office, MeetingRoom, Bedroom, Gym, LockerRoom, Lounge}

// room is what a room is like to live in.
type room struct {
	volume    float64 // cubic metres
	idleAir   float64 // air changes an hour while nobody is there
	busyAir   float64 // and while somebody is
	breath    float64 // CO2 of one person, cubic metres an hour
	moisture  float64 // vapour pressure that one person adds, hPa
	warm      float64 // degrees Celsius by day
	cool      float64 // degrees Celsius at night and on Sundays, while it is cold outside
	ceiling   float64 // degrees Celsius that cooling holds in summer
	window    float64 // share of the daylight that reaches the sensor
	lamps     float64 // lux
	quiet     float64 // dB of an empty room
	voice     float64 // dB of one person who is awake
	mostInUse int     // people
	people    func(*plan, *dice, *room)
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

// newRoom makes one room of a kind: no two are quite the same.
func newRoom(kind Kind, d *dice) room {
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
