package api

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
	"roomsensor/internal/wording"
)

const (
	nightParameter     = "night"
	fromNightParameter = "from_night"
	toNightParameter   = "to_night"

	// What a cursor keeps of the settings of the team beside the filters.
	zoneFilter  = "time zone"
	hoursFilter = "night hours"
)

// listNights handles GET /nights (A17).
func (s *server) listNights(ctx context.Context, c *call) error {
	state, err := s.readNightParameters(ctx, c)
	if err != nil {
		return err
	}
	return s.sendScan(ctx, c, state, maxNightBytes, func(p *page) error { return s.readNights(ctx, c, p) })
}

// maxNightBytes is more than a night takes in the list: its label, its external_ref and the name of its device have 200
// characters each.
const maxNightBytes = 6 << 10

// exportNights handles GET /nights.csv (A17.3).
func (s *server) exportNights(ctx context.Context, c *call) error {
	q, err := c.query(nightParameter, fromNightParameter, toNightParameter, externalRefParameter, metadataPrefix,
		keyParameter)
	if err != nil {
		return err
	}
	asked, err := readNightRequest(q)
	if err != nil {
		return err
	}
	selection, err := s.selectNights(ctx, c, asked)
	if err != nil {
		return err
	}
	selection.ExternalRef, selection.Metadata = q.Get(externalRefParameter), q.Tags()
	return s.sendExport(ctx, c, &export.Request{Format: export.NightsCSV, Nights: selection})
}

// nightRequest has the dates that a client sent; nil means that a parameter was not sent.
type nightRequest struct{ night, from, to *time.Time }

// readNightRequest reads the parameters that both forms of nights share, each by its own rule.
func readNightRequest(q httpedge.Query) (r nightRequest, err error) {
	for _, p := range []struct {
		name string
		date **time.Time
	}{{nightParameter, &r.night}, {fromNightParameter, &r.from}, {toNightParameter, &r.to}} {
		if *p.date, err = parseNight(p.name, q.Get(p.name)); err != nil {
			return r, err
		}
	}
	return r, checkAssignmentFilters(q)
}

// parseNight parses the date on which a night begins, or returns nil if it was not sent.
func parseNight(param string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // An absent parameter has no value and is no error.
	}
	date, err := time.Parse(time.DateOnly, *text)
	if err != nil {
		return nil, roomsensor.Invalid(param, param+" must be the date on which the night begins, for example 2026-01-31.")
	}
	return &date, nil
}

// selectNights returns the nights that a first page or an export means, by the settings of the team.
func (s *server) selectNights(ctx context.Context, c *call, asked nightRequest) (*airquality.NightSelection, error) {
	team, err := s.backend.TeamSettings(ctx, c.key.TeamID)
	if err != nil {
		return nil, err
	}
	selection := &airquality.NightSelection{
		Hours: team.Night, Zone: team.TimeZone, Limits: &team.Limits, Now: s.now().UTC().Truncate(time.Microsecond),
	}
	last, _ := team.Night.LastNight(selection.Now, team.TimeZone)
	selection.From, selection.To, err = airquality.ResolveNights(asked.night, asked.from, asked.to, last)
	return selection, err
}

// readNightParameters reads the parameters in the order of decision 22.
func (s *server) readNightParameters(ctx context.Context, c *call) (*cursor.State, error) {
	q, err := c.query(nightParameter, fromNightParameter, toNightParameter, externalRefParameter, metadataPrefix,
		cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	asked, err := readNightRequest(q)
	if err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.Nights, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, q.Compare(func(p httpedge.Parameter) bool {
			return asked.sameNight(p, state.Window) && httpedge.SameFilter(p, state, externalRefParameter)
		})
	}
	selection, err := s.selectNights(ctx, c, asked)
	if err != nil {
		return nil, err
	}
	state.Window, state.Now = roomsensor.Window{From: selection.From, To: selection.To}, selection.Now
	state.Filters = q.Filters(externalRefParameter)
	state.Filters[zoneFilter], state.Filters[hoursFilter] = selection.Zone.String(), selection.Hours.String()
	return state, nil
}

// sameNight compares a date that was sent with a cursor with that of the first page, by value.
func (r *nightRequest) sameNight(p httpedge.Parameter, first roomsensor.Window) bool {
	switch p.Name {
	case nightParameter:
		return r.night.Equal(first.From) && r.night.Equal(first.To)
	case fromNightParameter:
		return r.from.Equal(first.From)
	case toNightParameter:
		return r.to.Equal(first.To)
	}
	return true
}

// readNights reads a page. The order within a night changes with late readings, so that the next page goes on with the
// assignments that were not sent (decision 13).
func (s *server) readNights(ctx context.Context, c *call, p *page) error {
	selection, err := s.continueNights(ctx, c, p)
	if err != nil {
		return err
	}
	nights, queries := selection.Nights()
	names, sent := wording.CompareNames(), slices.Clone(p.State.Sent)
	most := p.State.Limit + 1
	return s.backend.EachNight(ctx, c.key.TeamID, queries, most, func(n int, rooms []airquality.NightRoom) bool {
		airquality.SortRooms(rooms, names)
		date := nights[n].Date
		if !date.Equal(p.State.At) {
			sent = nil
		}
		for i := range rooms {
			key := sentKey(rooms[i].Assignment.ID)
			if slices.Contains(sent, key) {
				continue
			}
			if !add(p, &render.NightItem{Date: date, Room: &rooms[i]}, render.Night) {
				return false
			}
			sent = append(sent, key)
			p.State.At, p.State.Sent = date, sent
		}
		return true
	})
}

// sentKey returns what identifies an assignment in the cursor of a night.
func sentKey(id uuid.UUID) uint64 {
	return binary.BigEndian.Uint64(id[:8]) ^ binary.BigEndian.Uint64(id[8:])
}

// continueNights returns the nights of a page: the time zone and the hours are those of the first page, the limits
// those of now.
func (s *server) continueNights(ctx context.Context, c *call, p *page) (*airquality.NightSelection, error) {
	team, err := s.backend.TeamSettings(ctx, c.key.TeamID)
	if err != nil {
		return nil, err
	}
	filters := p.State.Filters
	selection := &airquality.NightSelection{
		From: p.State.Window.From, To: p.State.Window.To, Limits: &team.Limits, Now: p.State.Now,
		ExternalRef: httpedge.OptionalFilter(filters, externalRefParameter), Metadata: httpedge.TagsIn(filters),
	}
	if p.State.Continued() {
		selection.To = p.State.At
	}
	var known bool
	if selection.Zone, known = timezone.Load(filters[zoneFilter]); !known {
		return nil, roomsensor.CodeCursorInvalid.New() // The cursor has a zone that this version does not know.
	}
	selection.Hours, err = airquality.ParseNightHours(filters[hoursFilter])
	return selection, err
}
