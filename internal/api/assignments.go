package api

import (
	"context"

	"roomsensor/internal/api/render"
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
	state, _, err := s.readState(c, q, cursor.Assignments, device)
	if err != nil {
		return err
	}
	return s.sendPage(ctx, c, state, maxAssignmentBytes, func(p *page) error {
		return s.readAssignments(ctx, c, p)
	})
}

// maxAssignmentBytes is more than an assignment takes in a list: its label and its external_ref have 200 characters.
const maxAssignmentBytes = 4 << 10

func (s *server) readAssignments(ctx context.Context, c *call, p *page) error {
	assignments, err := s.backend.Assignments(ctx, c.key.TeamID, p.State.Device, assignmentPage(p))
	if err != nil {
		return err
	}
	for i := range assignments {
		if add(p, &assignments[i], render.Assignment) {
			p.State.At, p.State.ID = assignments[i].StartedAt, assignments[i].ID
		}
	}
	if p.Items == 0 {
		return s.requireDevice(ctx, c, p.State.Device)
	}
	return nil
}

// assignmentPage selects one assignment more than the page holds.
func assignmentPage(p *page) roomsensor.AssignmentQuery {
	q := roomsensor.AssignmentQuery{Limit: p.State.Limit + 1}
	if p.State.Continued() {
		q.After = &roomsensor.AssignmentPosition{StartedAt: p.State.At, ID: p.State.ID}
	}
	return q
}
