package api

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// getDevice handles GET /devices/{device_id}.
func (s *server) getDevice(ctx context.Context, c *call) error {
	id, err := c.deviceID()
	if err != nil {
		return err
	}
	if _, err := c.query(); err != nil {
		return err
	}
	device, err := s.backend.Device(ctx, c.key.TeamID, id)
	if err != nil {
		return orDeviceNotFound(err)
	}
	return c.writeObject(render.Device(nil, &device, s.now()))
}

// requireDevice returns device_not_found unless the team has the device.
func (s *server) requireDevice(ctx context.Context, c *call, device uuid.UUID) error {
	_, err := s.backend.Device(ctx, c.key.TeamID, device)
	return orDeviceNotFound(err)
}

// orDeviceNotFound turns roomsensor.ErrNotFound into device_not_found and returns other errors unchanged.
func orDeviceNotFound(err error) error {
	if errors.Is(err, roomsensor.ErrNotFound) {
		return roomsensor.CodeDeviceNotFound.New()
	}
	return err
}

// listDevices handles GET /devices.
func (s *server) listDevices(ctx context.Context, c *call) error {
	state, err := s.readDeviceParameters(c, cursor.Devices)
	if err != nil {
		return err
	}
	now := s.now()
	item := func(dst []byte, d *roomsensor.Device) []byte { return render.Device(dst, d, now) }
	return s.sendDevices(ctx, c, state, func(p *page) error {
		return s.backend.EachDevice(ctx, c.key.TeamID, deviceQuery(p), func(d *roomsensor.Device) {
			if add(p, d, item) {
				p.State.ID = d.ID
			}
		})
	})
}

// sendDevices sends a page of devices. With a filter by tags, it reads the tags of the whole team, so that it is a
// scan.
func (s *server) sendDevices(ctx context.Context, c *call, state *cursor.State, read func(*page) error) error {
	if len(state.Filters) > 0 {
		return s.sendScan(ctx, c, state, maxDeviceBytes, read)
	}
	return s.sendPage(ctx, c, state, maxDeviceBytes, read)
}

// maxDeviceBytes is more than a device takes in a list: all tags, of control characters, take 153,000 bytes.
const maxDeviceBytes = 160 << 10

// readDeviceParameters reads the parameters of GET /devices and GET /devices/current.
func (s *server) readDeviceParameters(c *call, endpoint cursor.Endpoint) (*cursor.State, error) {
	q, err := c.query(cursorParameter, limitParameter, metadataPrefix)
	if err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, endpoint, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, q.Compare(func(p httpedge.Parameter) bool { return sameTag(p, state) })
	}
	state.Filters = q.Tags()
	return state, nil
}

// sameTag compares a tag filter that was sent with a cursor with that of the first page.
func sameTag(p httpedge.Parameter, state *cursor.State) bool {
	key, ok := strings.CutPrefix(p.Name, metadataPrefix)
	first, was := state.Filters[key]
	return !ok || (was && first == p.Value)
}

// deviceQuery selects one item more than the page holds. Tags that fill the page are enough.
func deviceQuery(p *page) roomsensor.DeviceQuery {
	q := roomsensor.DeviceQuery{Metadata: p.State.Filters, Limit: p.State.Limit + 1, MaxTagBytes: p.maxBytes}
	if p.State.Continued() {
		q.After = new(p.State.ID)
	}
	return q
}
