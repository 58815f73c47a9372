package api

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	typeParameter        = "type"
	labelParameter       = "label"
	externalRefParameter = httpedge.ExternalRefParameter
)

// listTeamAssignments handles GET /assignments (A18.1).
func (s *server) listTeamAssignments(ctx context.Context, c *call) error {
	state, err := s.readAssignmentParameters(c)
	if err != nil {
		return err
	}
	return s.sendPage(ctx, c, state, maxTeamAssignmentBytes, func(p *page) error {
		assignments, err := s.backend.TeamAssignments(ctx, c.key.TeamID, teamAssignmentQuery(p))
		for i := range assignments {
			if a := &assignments[i]; add(p, a, render.TeamAssignment) {
				p.State.At, p.State.ID = a.StartedAt, a.ID
			}
		}
		return err
	})
}

// maxTeamAssignmentBytes is more than an assignment takes in the list: its label, its external_ref and the name of its
// device have 200 characters each.
const maxTeamAssignmentBytes = 6 << 10

func teamAssignmentQuery(p *page) roomsensor.TeamAssignmentQuery {
	filters := p.State.Filters
	return roomsensor.TeamAssignmentQuery{
		AssignmentQuery: assignmentPage(p), Window: p.State.Window, Metadata: httpedge.TagsIn(filters),
		Type:        (*roomsensor.AssignmentType)(httpedge.OptionalFilter(filters, typeParameter)),
		Label:       httpedge.OptionalFilter(filters, labelParameter),
		ExternalRef: httpedge.OptionalFilter(filters, externalRefParameter),
	}
}

// readAssignmentParameters reads the parameters in the order of decision 22.
func (s *server) readAssignmentParameters(c *call) (*cursor.State, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, externalRefParameter, typeParameter, labelParameter,
		metadataPrefix, cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	times, err := httpedge.ReadTimeRange(q, roomsensor.AssignmentWindows, s.now())
	if err != nil {
		return nil, err
	}
	if err := checkAssignmentFilters(q); err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.TeamAssignments, uuid.Nil)
	if err != nil {
		return nil, err
	}
	names := []string{externalRefParameter, typeParameter, labelParameter}
	if !first {
		times.Rule.Default = 0 // Without a time parameter, the first page has what was open, not what overlaps a length.
		return state, q.Compare(func(p httpedge.Parameter) bool {
			return sameTime(p, times, state) && httpedge.SameFilter(p, state, names...)
		})
	}
	state.Request, state.Window, state.Filters = times.Request, times.Window, q.Filters(names...)
	if times.Request.IsZero() {
		state.Window = roomsensor.Window{From: times.Window.To, To: roomsensor.Forever} // What is open now.
	}
	return state, nil
}

// checkAssignmentFilters checks the parameters that select assignments, each by its own rule.
func checkAssignmentFilters(q httpedge.Query) error {
	for _, name := range []string{externalRefParameter, labelParameter} {
		if _, err := q.Name(name); err != nil {
			return err
		}
	}
	switch kind := q.Get(typeParameter); {
	case kind == nil, *kind == string(roomsensor.Athlete), *kind == string(roomsensor.Place):
		return nil
	}
	return roomsensor.Invalid(typeParameter, "type must be athlete or place.")
}
