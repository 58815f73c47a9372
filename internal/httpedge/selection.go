package httpedge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

// The parameters that select readings in time and by device.
const (
	FromParameter        = "from"
	ToParameter          = "to"
	LastParameter        = "last"
	AssignmentParameter  = "assignment_id"
	ExternalRefParameter = "external_ref"
	DevicesParameter     = "devices"
	TimeZoneParameter    = "time_zone"
)

// maxNamedDevices is the limit of ids in the parameter devices (decision 31).
const maxNamedDevices = 1000

// ParseID accepts only the hyphenated form of 36 characters, in any letter case (decision 7).
func ParseID(param, text string) (uuid.UUID, error) {
	if len(text) == len("00000000-0000-0000-0000-000000000000") {
		if id, err := uuid.Parse(text); err == nil {
			return id, nil
		}
	}
	return uuid.Nil, roomsensor.Invalid(param, param+" must be a UUID of 36 characters, "+
		"for example 0b5e7a52-6c1f-4f0a-9d3e-2f6a1c8b7d90. A hardware_id is not accepted.")
}

// SortedIDs returns ids in ascending order, each once.
func SortedIDs(ids []uuid.UUID) []uuid.UUID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), roomsensor.CompareIDs))
}

// TimeRange is what the parameters of a request select in time: a window, an assignment, or both.
type TimeRange struct {
	Rule       roomsensor.WindowRule
	Request    roomsensor.WindowRequest // the parameters from, to and last
	Window     roomsensor.Window        // of Request, without the assignment; set on first pages only
	Assignment *uuid.UUID               // the parameter assignment_id
}

// ReadTimeRange reads the parameters of time and assignment. Rules about from, to and now relative to each other apply
// to a first page only: with a cursor, a parameter that was not sent has the value of the first page.
func ReadTimeRange(q Query, rule roomsensor.WindowRule, now time.Time) (TimeRange, error) {
	times := TimeRange{Rule: rule}
	var err error
	times.Request, err = rule.Parse(q.Get(FromParameter), q.Get(ToParameter), q.Get(LastParameter))
	if err != nil {
		return TimeRange{}, err
	}
	if q.Get(CursorParameter) == nil {
		if times.Window, err = rule.Resolve(times.Request, now); err != nil {
			return TimeRange{}, err
		}
	}
	if text := q.Get(AssignmentParameter); text != nil {
		id, err := ParseID(AssignmentParameter, *text)
		if err != nil {
			return TimeRange{}, err
		}
		times.Assignment = &id
	}
	return times, nil
}

// Within returns the part of the window within the assignment, or the whole assignment if no parameter of time was sent
// (spec 4, readings, rule 2).
func (t TimeRange) Within(assignment *roomsensor.Assignment) roomsensor.Window {
	if t.Request.IsZero() {
		return assignment.Window()
	}
	return t.Window.Intersect(assignment.Window())
}

// DeviceSelection selects devices of a team. The zero DeviceSelection selects all.
type DeviceSelection struct {
	IDs         []uuid.UUID       // the parameter devices, as sent; nil selects all
	ExternalRef *string           // the parameter external_ref: only its assignments, each in its own time (A18.2)
	Tags        map[string]string // the parameters metadata.<key>, which the devices must have
}

// ReadDevices reads the parameters that select devices.
func ReadDevices(q Query) (selection DeviceSelection, err error) {
	selection.Tags = q.Tags()
	if selection.ExternalRef, err = readExternalRef(q); err != nil {
		return selection, err
	}
	text := q.Get(DevicesParameter)
	if text == nil {
		return selection, nil
	}
	ids := strings.Split(*text, ",")
	if len(ids) > maxNamedDevices {
		return selection, roomsensor.Invalid(DevicesParameter, fmt.Sprintf(
			"devices has %d ids; at most %d are allowed.", len(ids), maxNamedDevices))
	}
	for _, text := range ids {
		id, err := ParseID(DevicesParameter, text)
		if err != nil {
			return selection, roomsensor.Invalid(DevicesParameter,
				"devices must be a list of device_ids separated by commas, each a UUID of 36 characters.")
		}
		selection.IDs = append(selection.IDs, id)
	}
	return selection, nil
}

// readExternalRef reads the parameter that selects a person or a room by assignments, each with its device and time.
func readExternalRef(q Query) (*string, error) {
	text, err := q.Name(ExternalRefParameter)
	if text == nil || err != nil {
		return nil, err
	}
	for _, other := range []string{AssignmentParameter, DevicesParameter} {
		if q.Get(other) != nil {
			return nil, roomsensor.Invalid(ExternalRefParameter,
				"external_ref selects assignments with their devices. Leave out "+other+" or external_ref.")
		}
	}
	return text, nil
}

// From returns the selected devices of a team regardless of their assignments and tags, ascending and without
// duplicates. An id that is not a device of the team is device_not_found (decision 31).
func (s DeviceSelection) From(team []roomsensor.NamedDevice) ([]uuid.UUID, error) {
	known := make(map[uuid.UUID]bool, len(team))
	selected := make([]uuid.UUID, 0, len(team))
	for _, d := range team {
		known[d.ID] = true
		if s.IDs == nil {
			selected = append(selected, d.ID)
		}
	}
	for i, id := range s.IDs {
		if !known[id] {
			return nil, roomsensor.NewError(roomsensor.CodeDeviceNotFound, DevicesParameter,
				fmt.Sprintf("Number %d of the ids in devices is not a device of your team. GET /devices lists the devices.", i+1))
		}
		selected = append(selected, id)
	}
	return SortedIDs(selected), nil
}

// ReadTimeZone reads the parameter time_zone; nil is UTC (A1.3).
func ReadTimeZone(text *string) (*time.Location, error) {
	if text == nil {
		return time.UTC, nil
	}
	zone, ok := timezone.Load(*text)
	if !ok {
		return nil, roomsensor.Invalid(TimeZoneParameter, strings.TrimSpace(
			"time_zone must be the IANA name of a time zone in its exact letter case, for example Europe/Berlin. "+
				DidYouMean(Closest(*text, timezone.Names()))))
	}
	return zone, nil
}
