package app

import (
	"time"

	"roomsensor/internal/roomsensor"
)

// A demo's team and its twelve devices, of which each shows something that a
// client has to deal with.
const demoTeam = "Riverside Athletics"

// part is what a device of the demo does.
type part int

const (
	reports     part = iota // it uploads, also while it is looked at
	wentStale               // its last upload was some hours ago
	wentOffline             // its last upload was days ago
	inStock                 // it never reported
)

// How long ago the devices that do not report were seen.
const (
	staleFor   = 5 * time.Hour
	offlineFor = 4*24*time.Hour + 7*time.Hour
)

// demoDevice is one device of the cast. Its place in the cast decides which
// kind of room it measures (simulate.Kinds).
type demoDevice struct {
	name     string // empty: unnamed
	metadata map[string]string
	part     part
	swapped  time.Duration // how long ago its unit was replaced; 0: never
	blocks   []demoBlock   // in the order of time
}

// demoBlock is an assignment; times are days ago, ended 0 is open.
type demoBlock struct {
	kind           roomsensor.AssignmentType
	label          string
	where          roomsensor.HomeOrTravel
	ref            string // external_ref; empty: none
	started, ended float64
}

const demoDay = 24 * time.Hour

var demoCast = []demoDevice{
	{
		name:     "Coaches' office",
		metadata: map[string]string{"building": "main", "floor": "2"},
		blocks:   []demoBlock{{roomsensor.Place, "Coaches' office", roomsensor.Home, "room-201", 88, 0}},
	}, {
		name:     "Film room",
		metadata: map[string]string{"building": "main", "floor": "2"},
		blocks:   []demoBlock{{roomsensor.Place, "Film room", roomsensor.Home, "room-204", 88, 0}},
	}, {
		name:     "Dorm 12",
		metadata: map[string]string{"building": "dorm", "floor": "1", "wing": "east"},
		blocks: []demoBlock{
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Home, "athlete-1042", 85, 41.5},
			{roomsensor.Athlete, "Jonas Weber", roomsensor.Home, "athlete-1077", 40.25, 0},
		},
	}, {
		name:     "Weight room",
		metadata: map[string]string{"building": "gym", "floor": "0"},
		blocks:   []demoBlock{{roomsensor.Place, "Weight room", roomsensor.Home, "", 60, 0}},
	}, {
		name:     "Locker room, home",
		metadata: map[string]string{"building": "gym", "floor": "0", "team": "first"},
		blocks:   []demoBlock{{roomsensor.Place, "Locker room", roomsensor.Home, "", 60, 0}},
	}, {
		name:     "Dining hall",
		metadata: map[string]string{"building": "dorm", "floor": "0"},
		blocks:   []demoBlock{{roomsensor.Place, "Dining hall", roomsensor.Home, "room-002", 75, 0}},
	}, {
		name:     "Medical room",
		metadata: map[string]string{"building": "main", "floor": "0"},
		swapped:  24*demoDay + 5*time.Hour,
		blocks:   []demoBlock{{roomsensor.Place, "Medical room", roomsensor.Home, "room-007", 80, 0}},
	}, {
		name:     "Meeting room",
		metadata: map[string]string{"building": "main", "floor": "1"},
		part:     wentStale,
		blocks:   []demoBlock{{roomsensor.Place, "Meeting room", roomsensor.Home, "", 30, 0}},
	}, {
		name:     "Travel kit 1",
		metadata: map[string]string{"kit": "travel"},
		blocks: []demoBlock{
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Travel, "athlete-1042", 66, 61},
			{roomsensor.Athlete, "Ana Ruiz", roomsensor.Travel, "athlete-1015", 38, 34.5},
			{roomsensor.Athlete, "Maya Okafor", roomsensor.Travel, "athlete-1042", 17, 13},
		},
	}, {
		// Nobody named it yet.
		metadata: map[string]string{},
	}, {
		name:     "Recovery room",
		metadata: map[string]string{"building": "gym", "floor": "-1"},
		part:     wentOffline,
		blocks:   []demoBlock{{roomsensor.Place, "Recovery room", roomsensor.Home, "room-B03", 70, 0}},
	}, {
		name:     "Spare",
		metadata: map[string]string{"state": "in stock"},
		part:     inStock,
	},
}

// until is the end of what a device has measured and sent.
func (p part) until(now time.Time) time.Time {
	switch p {
	case wentStale:
		return now.Add(-staleFor)
	case wentOffline:
		return now.Add(-offlineFor)
	default:
		return now
	}
}
