package api

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// listReadings handles GET /devices/{device_id}/readings.
func (s *server) listReadings(ctx context.Context, c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	state, err := s.readReadingParameters(ctx, c, device)
	if err != nil {
		return err
	}
	return s.sendPage(ctx, c, state, maxReadingBytes, func(p *page) error { return s.readReadings(ctx, c, p) })
}

// maxReadingBytes is more than a reading takes in a list.
const maxReadingBytes = 256

// readReadings renders the readings while they arrive. Readings prove that the team has the device, so the device is
// looked up only if there are none.
func (s *server) readReadings(ctx context.Context, c *call, p *page) error {
	if !p.State.Window.Empty() {
		q := roomsensor.ReadingQuery{Window: p.State.Window, Limit: p.State.Limit + 1}
		if p.State.Continued() {
			q.Before = new(p.State.At)
		}
		err := s.backend.EachReading(ctx, c.key.TeamID, p.State.Device, q, func(r *roomsensor.Reading) {
			if add(p, r, render.Reading) {
				p.State.At = r.BucketAt
			}
		})
		if err != nil {
			return err
		}
	}
	if p.Items == 0 {
		return s.requireDevice(ctx, c, p.State.Device)
	}
	return nil
}

// readReadingParameters reads the parameters in the order of decision 22: each by its own rule, then the cursor, then
// device and assignment.
func (s *server) readReadingParameters(ctx context.Context, c *call, device uuid.UUID) (*cursor.State, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter, cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	times, err := httpedge.ReadTimeRange(q, roomsensor.ReadingWindows, s.now())
	if err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.Readings, device)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, q.Compare(func(p httpedge.Parameter) bool { return sameTime(p, times, state) })
	}
	state.Request, state.Assignment, state.Window = times.Request, times.Assignment, times.Window
	if times.Assignment != nil {
		state.Window, err = s.assignmentWindow(ctx, c, device, times)
	}
	return state, err
}

// assignmentWindow returns the part of the window within the assignment (spec 4, readings, rules 2 to 4).
func (s *server) assignmentWindow(
	ctx context.Context, c *call, device uuid.UUID, times httpedge.TimeRange,
) (roomsensor.Window, error) {
	assignment, err := s.deviceAssignment(ctx, c, device, *times.Assignment)
	if err != nil {
		return roomsensor.Window{}, err
	}
	return times.Within(&assignment), nil
}

// deviceAssignment returns an assignment of a device. One of another device is assignment_not_found (spec 4, readings,
// rule 4).
func (s *server) deviceAssignment(
	ctx context.Context, c *call, device, id uuid.UUID,
) (roomsensor.Assignment, error) {
	assignment, err := s.backend.Assignment(ctx, c.key.TeamID, id)
	if errors.Is(err, roomsensor.ErrNotFound) || (err == nil && assignment.DeviceID != device) {
		if err := s.requireDevice(ctx, c, device); err != nil {
			return roomsensor.Assignment{}, err
		}
		return roomsensor.Assignment{}, roomsensor.CodeAssignmentNotFound.New()
	}
	return assignment, err
}
