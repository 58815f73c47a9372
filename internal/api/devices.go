package api

import (
	"errors"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

func (s *server) getDevice(c *call) error {
	id, err := c.deviceID()
	if err != nil {
		return err
	}
	if _, err := c.query(); err != nil {
		return err
	}
	device, err := s.backend.Device(c.ctx(), c.key.TeamID, id)
	if err != nil {
		return orDeviceNotFound(err)
	}
	return c.writeObject(appendDevice(nil, &device, s.now()))
}

// orDeviceNotFound says which thing is not there.
func orDeviceNotFound(err error) error {
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.CodeDeviceNotFound.New()
	}
	return err
}

func (s *server) listDevices(c *call) error {
	walk, err := s.deviceWalk(c, cursor.Devices)
	if err != nil {
		return err
	}
	devices, err := s.backend.Devices(c.ctx(), c.key.TeamID, deviceQuery(walk))
	if err != nil {
		return err
	}
	now := s.now()
	return sendPage(s, c, walk, devices,
		func(last *roomsensor.Device) { walk.ID = last.ID },
		func(dst []byte, d *roomsensor.Device) []byte { return appendDevice(dst, d, now) })
}

func (s *server) listCurrentDevices(c *call) error {
	walk, err := s.deviceWalk(c, cursor.CurrentDevices)
	if err != nil {
		return err
	}
	snap, err := s.current.of(c.ctx(), c.key.TeamID)
	if err != nil {
		return err
	}
	now := s.now()
	if isWhole(walk) && !snap.partial && len(snap.devices) <= walk.Limit {
		c.rows = len(snap.devices)
		return c.writeDocument(snap.document(now))
	}
	devices, hours := snap.page(deviceQuery(walk)), snap.hours
	if snap.partial {
		hours = roomsensor.SummaryWindow(now)
		devices, err = s.backend.CurrentDevices(c.ctx(), c.key.TeamID, deviceQuery(walk), hours)
		if err != nil {
			return err
		}
	}
	return sendPage(s, c, walk, devices,
		func(last *roomsensor.CurrentDevice) { walk.ID = last.ID },
		func(dst []byte, d *roomsensor.CurrentDevice) []byte { return appendCurrent(dst, d, now, hours.From) })
}

// isWhole reports whether a walk begins and leaves no device out.
func isWhole(walk *cursor.Walk) bool { return !resumed(walk) && len(walk.Metadata) == 0 }

// deviceWalk reads the parameters of both lists of devices.
func (s *server) deviceWalk(c *call, endpoint cursor.Endpoint) (*cursor.Walk, error) {
	q, err := c.query(cursorParameter, limitParameter, metadataPrefix)
	if err != nil {
		return nil, err
	}
	limit, err := q.limit()
	if err != nil {
		return nil, err
	}
	walk, err := s.resume(c, q, endpoint, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if walk == nil {
		walk = begin(c, endpoint, uuid.Nil)
		walk.Metadata = q.tags()
	} else if err := sameTags(q, walk); err != nil {
		return nil, err
	}
	return withLimit(walk, limit), nil
}

// sameTags holds the filters that are sent beside a cursor to those of the
// first page.
func sameTags(q query, walk *cursor.Walk) error {
	for _, p := range q {
		key, ok := strings.CutPrefix(p.name, metadataPrefix)
		if !ok {
			continue
		}
		if first, was := walk.Metadata[key]; !was || first != p.value {
			return differs(p.name)
		}
	}
	return nil
}

// deviceQuery reads one item more than a page holds.
func deviceQuery(walk *cursor.Walk) roomsensor.DeviceQuery {
	q := roomsensor.DeviceQuery{Metadata: walk.Metadata, Limit: walk.Limit + 1}
	if resumed(walk) {
		q.After = &walk.ID
	}
	return q
}
