package api

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
)

// listCoverage handles GET /coverage (A3).
func (s *server) listCoverage(ctx context.Context, c *call) error {
	state, err := s.readCoverageParameters(c)
	if err != nil {
		return err
	}
	now := s.now()
	item := func(dst []byte, d *completeness.DeviceCoverage) []byte { return render.Coverage(dst, d, now) }
	return s.sendScan(ctx, c, state, maxCoverageBytes, func(p *page) error {
		q := completeness.CoverageQuery{
			DeviceQuery: roomsensor.DeviceQuery{Metadata: httpedge.TagsIn(p.State.Filters), Limit: p.State.Limit},
			ExternalRef: httpedge.OptionalFilter(p.State.Filters, externalRefParameter),
			Window:      p.State.Window, Now: p.State.Now,
		}
		if p.State.Continued() {
			q.After = new(p.State.ID)
		}
		more, err := s.backend.EachCoverage(ctx, c.key.TeamID, q, func(d *completeness.DeviceCoverage) bool {
			fits := add(p, d, item)
			if fits {
				p.State.ID = d.ID
			}
			return fits
		})
		p.More = p.More || more
		return err
	})
}

// maxCoverageBytes is more than a device takes in the list: its name, and the label and the external_ref of its
// assignment, have 200 characters.
const maxCoverageBytes = 6 << 10

// readCoverageParameters reads the parameters in the order of decision 22.
func (s *server) readCoverageParameters(c *call) (*cursor.State, error) {
	q, err := c.query(fromParameter, toParameter, lastParameter, externalRefParameter, cursorParameter, limitParameter,
		metadataPrefix)
	if err != nil {
		return nil, err
	}
	times, err := httpedge.ReadTimeRange(q, roomsensor.ReadingWindows, s.now())
	if err != nil {
		return nil, err
	}
	if _, err := httpedge.ReadDevices(q); err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.Coverage, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, q.Compare(func(p httpedge.Parameter) bool {
			return sameTime(p, times, state) && httpedge.SameFilter(p, state, externalRefParameter)
		})
	}
	state.Request, state.Window, state.Now = times.Request, times.Window, s.now()
	state.Filters = q.Filters(externalRefParameter)
	return state, nil
}

// sendScan is sendPage for a list whose pages read many readings: it waits until few others do (newScanLimiter), and
// lets others begin before it sends the page. Like listChanges it waits after it has the memory of the page, so that a
// request that waits for memory holds no scan.
func (s *server) sendScan(
	ctx context.Context, c *call, state *cursor.State, itemBytes int, read func(*page) error,
) error {
	return s.sendPage(ctx, c, state, itemBytes, func(p *page) error {
		scan, err := reserve(ctx, s.scans, c.key.TeamID, 1, shareWait)
		if err != nil {
			return err
		}
		defer scan.Release()
		return read(p)
	})
}
