package api

import (
	"context"
	"time"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

// listCurrentDevices handles GET /devices/current.
func (s *server) listCurrentDevices(ctx context.Context, c *call) error {
	state, err := s.readDeviceParameters(c, cursor.CurrentDevices)
	if err != nil {
		return err
	}
	snap, err := s.current.of(ctx, c.key.TeamID)
	if err != nil {
		return err
	}
	if !snap.partial {
		s.metrics.snapshotAge.Observe(time.Since(snap.readAt).Seconds())
	}
	now := s.now()
	if !snap.partial && !state.Continued() && len(state.Filters) == 0 && len(snap.devices) <= state.Limit {
		if whole := snap.document(now); whole != nil {
			c.rows = len(snap.devices)
			return s.writeDocument(ctx, c, whole)
		}
	}
	send := s.sendPage
	if snap.partial {
		send = s.sendScan
	}
	return send(ctx, c, state, maxDeviceBytes, func(p *page) error {
		devices, hours := snap.page(deviceQuery(p)), snap.hours
		if snap.partial {
			hours = roomsensor.SummaryWindow(now)
			devices, err = s.backend.CurrentDevices(ctx, c.key.TeamID, deviceQuery(p), hours)
			if err != nil {
				return err
			}
		}
		item := func(dst []byte, d *roomsensor.CurrentDevice) []byte { return render.Current(dst, d, now, hours.From) }
		for i := range devices {
			if add(p, &devices[i], item) {
				p.State.ID = devices[i].ID
			}
		}
		return nil
	})
}
