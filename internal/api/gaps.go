package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
)

const minParameter = "min"

// listGaps handles GET /devices/{device_id}/gaps (A4).
func (s *server) listGaps(ctx context.Context, c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	state, err := s.readGapParameters(ctx, c, device)
	if err != nil {
		return err
	}
	return s.sendScan(ctx, c, state, maxGapBytes, func(p *page) error { return s.readGaps(ctx, c, p) })
}

// maxGapBytes is more than a gap takes in a list.
const maxGapBytes = 128

// readGaps reads a page. The store may end it early; the next page then continues where it ended.
func (s *server) readGaps(ctx context.Context, c *call, p *page) error {
	shortest, err := time.ParseDuration(p.State.Filters[minParameter])
	if err != nil {
		return err //nolint:wrapcheck // A cursor has what the first page wrote.
	}
	q := completeness.GapQuery{Window: p.State.Window, Now: p.State.Now, Min: shortest}
	if p.State.Continued() {
		q.Before = new(p.State.At)
	}
	rest, err := s.backend.EachGap(ctx, c.key.TeamID, p.State.Device, q, func(gap *roomsensor.Window) bool {
		fits := add(p, gap, render.Gap)
		if fits {
			p.State.At = gap.From
		}
		return fits
	})
	if rest != nil {
		p.State.At, p.More = *rest, true
	}
	return orDeviceNotFound(err)
}

// readGapParameters reads the parameters in the order of decision 22: each by its own rule, then the cursor, then the
// assignment. Without one, the device is looked up when the page is read.
func (s *server) readGapParameters(ctx context.Context, c *call, device uuid.UUID) (*cursor.State, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, assignmentParameter, minParameter,
		cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	times, err := httpedge.ReadTimeRange(q, roomsensor.ReadingWindows, s.now())
	if err != nil {
		return nil, err
	}
	shortest, err := completeness.ParseMinGap(q.Get(minParameter))
	if err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.Gaps, device)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, q.Compare(func(p httpedge.Parameter) bool {
			return sameTime(p, times, state) && (p.Name != minParameter || shortest.String() == state.Filters[minParameter])
		})
	}
	state.Request, state.Assignment, state.Window, state.Now = times.Request, times.Assignment, times.Window, s.now()
	state.Filters = map[string]string{minParameter: shortest.String()}
	if times.Assignment != nil {
		state.Window, err = s.assignmentWindow(ctx, c, device, times)
	}
	return state, err
}
