package api

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	keyParameter        = "key"
	fromParameter       = "from"
	toParameter         = "to"
	lastParameter       = "last"
	assignmentParameter = "assignment_id"
	cursorParameter     = httpedge.CursorParameter
	limitParameter      = httpedge.LimitParameter
	metadataPrefix      = httpedge.MetadataPrefix
)

// query returns the parameters of a request (decision 6), of which known are all that the endpoint has.
func (c *call) query(known ...string) (httpedge.Query, error) {
	return httpedge.ParseQuery(c.Request().URL.RawQuery, known...)
}

// deviceID returns the id in the path (decision 7).
func (c *call) deviceID() (uuid.UUID, error) {
	return parseID("device_id", c.Param("device_id"))
}

// parseID accepts only the hyphenated form of 36 characters, in any letter case (decision 7).
func parseID(param, text string) (uuid.UUID, error) {
	if len(text) == len("00000000-0000-0000-0000-000000000000") {
		if id, err := uuid.Parse(text); err == nil {
			return id, nil
		}
	}
	return uuid.Nil, roomsensor.Invalid(param, param+" must be a UUID of 36 characters, "+
		"for example 0b5e7a52-6c1f-4f0a-9d3e-2f6a1c8b7d90. A hardware_id is not accepted.")
}

// timeRange is what the parameters of a request select in time: a window, an assignment, or both.
type timeRange struct {
	rule       roomsensor.WindowRule
	request    roomsensor.WindowRequest // the parameters from, to and last
	window     roomsensor.Window        // of request, without the assignment; set on first pages only
	assignment *uuid.UUID               // the parameter assignment_id
}

// readTimeRange reads the parameters of time and assignment. Rules about from, to and now relative to each other apply
// to a first page only: with a cursor, a parameter that was not sent has the value of the first page.
func readTimeRange(q httpedge.Query, rule roomsensor.WindowRule, now time.Time) (timeRange, error) {
	times := timeRange{rule: rule}
	var err error
	times.request, err = rule.Parse(q.Get(fromParameter), q.Get(toParameter), q.Get(lastParameter))
	if err != nil {
		return timeRange{}, err
	}
	if q.Get(cursorParameter) == nil {
		if times.window, err = rule.Resolve(times.request, now); err != nil {
			return timeRange{}, err
		}
	}
	if text := q.Get(assignmentParameter); text != nil {
		id, err := parseID(assignmentParameter, *text)
		if err != nil {
			return timeRange{}, err
		}
		times.assignment = &id
	}
	return times, nil
}

// within returns the part of the window within the assignment, or the whole assignment if no parameter of time was sent
// (spec 4, readings, rule 2).
func (t timeRange) within(assignment *roomsensor.Assignment) roomsensor.Window {
	if t.request.IsZero() {
		return assignment.Window()
	}
	return t.window.Intersect(assignment.Window())
}

// sameTimeRange compares the parameters that were sent with a cursor with those of the first page, by value
// (decision 12). With last, from and to are ignored.
func sameTimeRange(q httpedge.Query, times timeRange, state *cursor.State) error {
	first := state.Request
	if first.IsZero() && state.Assignment == nil {
		first.Last = times.rule.Default
	}
	for _, p := range q {
		same := true
		switch p.Name {
		case lastParameter:
			same = times.request.Last == first.Last
		case fromParameter:
			same = times.request.Last > 0 || sameInstant(times.request.From, first.From)
		case toParameter:
			same = times.request.Last > 0 || sameInstant(times.request.To, first.To)
		case assignmentParameter:
			same = state.Assignment != nil && *times.assignment == *state.Assignment
		}
		if !same {
			return httpedge.Differs(p.Name)
		}
	}
	return nil
}

func sameInstant(a, b *time.Time) bool {
	return a != nil && b != nil && a.Equal(*b)
}
