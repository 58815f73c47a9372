package demo

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// demoTeam is the name of the team.
const demoTeam = "Riverside Athletics"

const day = 24 * time.Hour

// How long ago the devices that do not report have uploaded for the last time.
const (
	staleFor      = 5 * time.Hour
	offlineFor    = 4*day + 7*time.Hour
	neverReported = 100 * 365 * day // before every history
)

// demoDevice is one device of the team. Its index decides which kind of room it measures (simulate.Fleet).
type demoDevice struct {
	name        string // empty: unnamed
	metadata    map[string]string
	note        string           // what it shows, for the overview
	silent      time.Duration    // how long ago it uploaded for the last time; 0: it keeps uploading
	replaced    time.Duration    // how long ago its unit was replaced; 0: never
	sealed      bool             // nobody opens a window
	unplugged   span             // it measured nothing
	unconnected span             // it measured, and uploaded at the end
	assignments []demoAssignment // oldest first
}

// span is a part of the time before the demo was created.
type span struct{ began, ended time.Duration } // ago

// demoAssignment is an assignment of a device.
type demoAssignment struct {
	kind           roomsensor.AssignmentType
	label          string
	where          roomsensor.HomeOrTravel
	ref            string  // external_ref; empty: none
	started, ended float64 // days ago; ended 0 is open
}

// demoDevices are the devices of the team. Each of them shows something that a client must handle.
var demoDevices = []demoDevice{
	{
		name:        "Coaches' office",
		metadata:    map[string]string{"building": "main", "floor": "2"},
		assignments: []demoAssignment{{roomsensor.Place, "Coaches' office", roomsensor.Home, "room-201", 88, 0}},
	}, {
		name:        "Film room",
		metadata:    map[string]string{"building": "main", "floor": "2"},
		assignments: []demoAssignment{{roomsensor.Place, "Film room", roomsensor.Home, "room-204", 88, 0}},
	}, {
		name:     "Dorm 12",
		metadata: map[string]string{"building": "dorm", "floor": "1", "wing": "east"},
		note:     "assigned to its second athlete",
		assignments: []demoAssignment{
			{roomsensor.Athlete, "Jonas Weber", roomsensor.Home, "athlete-1077", 85, 6.5},
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Home, "athlete-1042", 6, 0}, // From Dorm 14.
		},
	}, {
		name:        "Weight room",
		metadata:    map[string]string{"building": "gym", "floor": "0"},
		assignments: []demoAssignment{{roomsensor.Place, "Weight room", roomsensor.Home, "", 60, 0}},
	}, {
		name:        "Locker room, home",
		metadata:    map[string]string{"building": "gym", "floor": "0", "team": "first"},
		assignments: []demoAssignment{{roomsensor.Place, "Locker room", roomsensor.Home, "", 60, 0}},
	}, {
		name:        "Dining hall",
		metadata:    map[string]string{"building": "dorm", "floor": "0"},
		assignments: []demoAssignment{{roomsensor.Place, "Dining hall", roomsensor.Home, "room-002", 75, 0}},
	}, {
		name:        "Medical room",
		metadata:    map[string]string{"building": "main", "floor": "0"},
		note:        "its unit was replaced 24 days before the demo was created",
		replaced:    24*day + 5*time.Hour,
		assignments: []demoAssignment{{roomsensor.Place, "Medical room", roomsensor.Home, "room-007", 80, 0}},
	}, {
		name:        "Meeting room",
		metadata:    map[string]string{"building": "main", "floor": "1"},
		silent:      staleFor,
		assignments: []demoAssignment{{roomsensor.Place, "Meeting room", roomsensor.Home, "", 30, 0}},
	}, {
		name:     "Travel kit 1",
		metadata: map[string]string{"kit": "travel"},
		note:     "available; its assignments have ended",
		assignments: []demoAssignment{
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Travel, "athlete-1042", 66, 61},
			{roomsensor.Athlete, "Ana Ruiz", roomsensor.Travel, "athlete-1015", 38, 34.5},
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Travel, "athlete-1042", 17, 13},
		},
	}, {
		// Not named yet.
		metadata: map[string]string{},
	}, {
		name:        "Recovery room",
		metadata:    map[string]string{"building": "gym", "floor": "-1"},
		silent:      offlineFor,
		assignments: []demoAssignment{{roomsensor.Place, "Recovery room", roomsensor.Home, "room-B03", 70, 0}},
	}, {
		name:     "Spare",
		metadata: map[string]string{"state": "in stock"},
		silent:   neverReported,
	}, {
		name:        "Physio room",
		metadata:    map[string]string{"building": "main", "floor": "0"},
		note:        "was unplugged for 6 hours",
		unplugged:   span{15 * time.Hour, 9 * time.Hour},
		assignments: []demoAssignment{{roomsensor.Place, "Physio room", roomsensor.Home, "room-009", 50, 0}},
	}, {
		name:        "Classroom",
		metadata:    map[string]string{"building": "main", "floor": "1"},
		note:        "uploaded 9 hours late, at once",
		unconnected: span{20 * time.Hour, 11 * time.Hour},
		assignments: []demoAssignment{{roomsensor.Place, "Classroom", roomsensor.Home, "room-105", 50, 0}},
	}, {
		name:     "Dorm 14",
		metadata: map[string]string{"building": "dorm", "floor": "1", "wing": "east"},
		note:     "nobody opens a window; its air is bad at night",
		sealed:   true,
		assignments: []demoAssignment{
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Home, "athlete-1042", 60, 6},
			{roomsensor.Athlete, "Ana Ruiz", roomsensor.Home, "athlete-1015", 5, 0},
		},
	},
}
