package api

import (
	"context"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// listAssignments handles GET /devices/{device_id}/assignments.
func (s *server) listAssignments(ctx context.Context, c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	q, err := c.query(cursorParameter, limitParameter)
	if err != nil {
		return err
	}
	limit, err := q.limit()
	if err != nil {
		return err
	}
	state, err := s.readCursor(c, q, cursor.Assignments, device)
	if err != nil {
		return err
	}
	if state == nil {
		state = firstPage(c, cursor.Assignments, device)
	}
	state = withLimit(state, limit)
	assignments, err := s.backend.Assignments(ctx, c.key.TeamID, device, assignmentQuery(state))
	if err != nil {
		return err
	}
	if len(assignments) == 0 {
		if err := s.requireDevice(ctx, c, device); err != nil {
			return err
		}
	}
	return sendPage(s, c, state, assignments,
		func(last *roomsensor.Assignment) { state.At, state.ID = last.StartedAt, last.ID },
		appendAssignment)
}

func assignmentQuery(state *cursor.State) roomsensor.AssignmentQuery {
	q := roomsensor.AssignmentQuery{Limit: state.Limit + 1}
	if continued(state) {
		q.After = &roomsensor.AssignmentPosition{StartedAt: state.At, ID: state.ID}
	}
	return q
}
