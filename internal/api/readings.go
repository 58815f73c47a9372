package api

import (
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

func (s *server) listReadings(c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	walk, err := s.readingWalk(c, device)
	if err != nil {
		return err
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	page := newPage(*buffer, walk.Limit)
	if err := s.readPage(c, walk, page); err != nil {
		return err
	}
	*buffer = page.end(s, walk)
	c.rows = page.items
	return c.writeList(*buffer)
}

// readPage reads one item more than a page holds. Rows say that the device is
// the team's; only where there is none it has to be looked for.
func (s *server) readPage(c *call, walk *cursor.Walk, page *page) error {
	if !walk.Window.Empty() {
		q := roomsensor.ReadingQuery{Window: walk.Window, Limit: walk.Limit + 1}
		if resumed(walk) {
			before := walk.At
			q.Before = &before
		}
		err := s.backend.EachReading(c.ctx(), c.key.TeamID, walk.Device, q, func(r *roomsensor.Reading) {
			if page.next() {
				page.body = appendReading(page.body, r)
				walk.At = r.BucketAt
			}
		})
		if err != nil {
			return err
		}
	}
	if page.items == 0 {
		return s.deviceExists(c, walk.Device)
	}
	return nil
}

// deviceExists is device_not_found for a device that is not the team's.
func (s *server) deviceExists(c *call, device uuid.UUID) error {
	_, err := s.backend.Device(c.ctx(), c.key.TeamID, device)
	return orDeviceNotFound(err)
}

// readingWalk reads the parameters, in the order of decision 22: each by its
// own rule, then the cursor, then device and assignment.
func (s *server) readingWalk(c *call, device uuid.UUID) (*cursor.Walk, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter, cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	asked, err := s.readSpan(q)
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	walk, err := s.resume(c, q, cursor.Readings, device)
	if err != nil {
		return nil, err
	}
	if walk != nil {
		return withLimit(walk, limit), sameSpan(q, asked, walk)
	}
	walk = begin(c, cursor.Readings, device)
	walk.Request, walk.Assignment, walk.Window = asked.request, asked.assignment, asked.window
	if asked.assignment != nil {
		walk.Window, err = s.assignmentWindow(c, device, asked)
	}
	return withLimit(walk, limit), err
}

// assignmentWindow is the part of the window that lies in the assignment
// (spec 4, readings, rules 2 to 4).
func (s *server) assignmentWindow(c *call, device uuid.UUID, asked span) (roomsensor.Window, error) {
	assignment, err := s.backend.Assignment(c.ctx(), c.key.TeamID, *asked.assignment)
	if errors.Is(err, roomsensor.ErrNotFound) || (err == nil && assignment.DeviceID != device) {
		if err := s.deviceExists(c, device); err != nil {
			return roomsensor.Window{}, err
		}
		return roomsensor.Window{}, roomsensor.CodeAssignmentNotFound.New()
	}
	return asked.in(&assignment), err
}
