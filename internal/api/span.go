package api

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// The parameters that select a span of time.
const (
	fromParameter       = "from"
	toParameter         = "to"
	lastParameter       = "last"
	assignmentParameter = "assignment_id"
)

// span is what a request says about time: a window, an assignment, or both.
type span struct {
	request    roomsensor.WindowRequest
	window     roomsensor.Window // as requested, before the assignment; of a first page
	assignment *uuid.UUID
}

// readSpan reads the parameters of time and assignment. How from, to and now
// lie to each other is judged on a first page alone: beside a cursor, what is
// left out has the value of the first page.
func (s *server) readSpan(q query) (span, error) {
	var asked span
	var err error
	asked.request, err = roomsensor.ParseWindow(q.get(fromParameter), q.get(toParameter), q.get(lastParameter))
	if err != nil {
		return span{}, err
	}
	if q.get(cursorParameter) == nil {
		if asked.window, err = asked.request.Resolve(s.now()); err != nil {
			return span{}, err
		}
	}
	if text := q.get(assignmentParameter); text != nil {
		id, err := parseID(assignmentParameter, *text)
		if err != nil {
			return span{}, err
		}
		asked.assignment = &id
	}
	return asked, nil
}

// in is the window of the span within its assignment. Without a parameter of
// time it is the assignment's (spec 4, readings, rule 2).
func (a span) in(assignment *roomsensor.Assignment) roomsensor.Window {
	if a.request.IsZero() {
		return assignment.Window()
	}
	return a.window.Intersect(assignment.Window())
}

// sameSpan holds the parameters that are sent beside a cursor to those of the
// first page, by value (decision 12). from and to beside last are ignored.
func sameSpan(q query, asked span, walk *cursor.Walk) error {
	first := walk.Request
	if first.IsZero() && walk.Assignment == nil {
		first.Last = roomsensor.DefaultWindow
	}
	for _, p := range q {
		same := true
		switch p.name {
		case lastParameter:
			same = asked.request.Last == first.Last
		case fromParameter:
			same = asked.request.Last > 0 || sameInstant(asked.request.From, first.From)
		case toParameter:
			same = asked.request.Last > 0 || sameInstant(asked.request.To, first.To)
		case assignmentParameter:
			same = walk.Assignment != nil && *asked.assignment == *walk.Assignment
		}
		if !same {
			return differs(p.name)
		}
	}
	return nil
}

func sameInstant(a, b *time.Time) bool {
	return a != nil && b != nil && a.Equal(*b)
}
