package api

import (
	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

func (s *server) listAssignments(c *call) error {
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
	walk, err := s.resume(c, q, cursor.Assignments, device)
	if err != nil {
		return err
	}
	if walk == nil {
		walk = begin(c, cursor.Assignments, device)
	}
	walk = withLimit(walk, limit)
	assignments, err := s.backend.Assignments(c.ctx(), c.key.TeamID, device, assignmentQuery(walk))
	if err != nil {
		return err
	}
	if len(assignments) == 0 {
		if err := s.deviceExists(c, device); err != nil {
			return err
		}
	}
	return sendPage(s, c, walk, assignments,
		func(last *roomsensor.Assignment) { walk.At, walk.ID = last.StartedAt, last.ID },
		appendAssignment)
}

func assignmentQuery(walk *cursor.Walk) roomsensor.AssignmentQuery {
	q := roomsensor.AssignmentQuery{Limit: walk.Limit + 1}
	if resumed(walk) {
		q.After = &roomsensor.AssignmentPosition{StartedAt: walk.At, ID: walk.ID}
	}
	return q
}
