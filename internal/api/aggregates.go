package api

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/cursor"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

const (
	intervalParameter = "interval"
	timeZoneParameter = httpedge.TimeZoneParameter
)

// aggregateRequest has the parameters that both forms of aggregates share (A1, A2).
type aggregateRequest struct {
	interval aggregate.Interval // empty if it was not sent with a cursor
	zone     *time.Location
	metrics  []roomsensor.Metric
	times    httpedge.TimeRange
}

// readAggregateRequest reads the parameters, each by its own rule. With a cursor, interval may be missing.
func (s *server) readAggregateRequest(q httpedge.Query) (r aggregateRequest, err error) {
	windows := aggregate.Daily.Windows() // A cursor without interval may belong to either; this rule admits more.
	if text := q.Get(intervalParameter); text != nil || q.Get(cursorParameter) == nil {
		if r.interval, err = aggregate.ParseInterval(text); err != nil {
			return r, err
		}
		windows = r.interval.Windows()
	}
	if r.zone, err = httpedge.ReadTimeZone(q.Get(timeZoneParameter)); err != nil {
		return r, err
	}
	if r.metrics, err = roomsensor.ParseMetrics(q.Get(metricsParameter)); err != nil {
		return r, err
	}
	r.times, err = httpedge.ReadTimeRange(q, windows, s.now())
	r.times.Window = roomsensor.Expressible(r.times.Window)
	return r, err
}

// filters returns the parameters that a cursor keeps, in one form for each meaning.
func (r *aggregateRequest) filters() map[string]string {
	names := make([]string, len(r.metrics))
	for i, m := range r.metrics {
		names[i] = m.String()
	}
	return map[string]string{
		intervalParameter: string(r.interval), timeZoneParameter: r.zone.String(), metricsParameter: strings.Join(names, ","),
	}
}

// listAggregates handles GET /devices/{device_id}/aggregates (A1).
func (s *server) listAggregates(ctx context.Context, c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	state, err := s.readAggregateParameters(ctx, c, device)
	if err != nil {
		return err
	}
	return s.sendScan(ctx, c, state, maxAggregateBytes, func(p *page) error { return s.readAggregates(ctx, c, p) })
}

// maxAggregateBytes is more than an item takes in a list.
const maxAggregateBytes = 1 << 10

// readAggregates reads a page. The store may end it early.
func (s *server) readAggregates(ctx context.Context, c *call, p *page) error {
	interval := aggregate.Interval(p.State.Filters[intervalParameter])
	zone, err := httpedge.ReadTimeZone(new(p.State.Filters[timeZoneParameter]))
	if err != nil {
		return err // The cursor has a zone that this version does not know.
	}
	metrics, err := roomsensor.ParseMetrics(new(p.State.Filters[metricsParameter]))
	if err != nil {
		return err
	}
	rest := p.State.Window
	if p.State.Continued() {
		rest.To = p.State.At
	}
	buckets := aggregate.NewCalendar(interval, zone).Newest(rest, p.State.Limit+1)
	if len(buckets) == 0 {
		return s.requireDevice(ctx, c, p.State.Device)
	}
	more := len(buckets) > p.State.Limit
	buckets = buckets[:min(len(buckets), p.State.Limit)]
	list, err := s.backend.DeviceAggregates(ctx, c.key.TeamID, p.State.Device, aggregate.Query{
		Window: p.State.Window, Buckets: buckets, Now: p.State.Now,
	})
	if err != nil {
		return orDeviceNotFound(err)
	}
	item := func(dst []byte, a *aggregate.Aggregate) []byte { return render.Aggregate(dst, a, metrics) }
	for i := range list {
		if add(p, &list[i], item) {
			p.State.At = list[i].Bucket.From
		}
	}
	p.More = p.More || more || len(list) < len(buckets)
	return nil
}

// readAggregateParameters reads the parameters in the order of decision 22.
func (s *server) readAggregateParameters(ctx context.Context, c *call, device uuid.UUID) (*cursor.State, error) {
	q, err := c.query(intervalParameter, timeZoneParameter, metricsParameter, fromParameter, toParameter, lastParameter,
		assignmentParameter, cursorParameter, limitParameter)
	if err != nil {
		return nil, err
	}
	asked, err := s.readAggregateRequest(q)
	if err != nil {
		return nil, err
	}
	state, first, err := s.readState(c, q, cursor.Aggregates, device)
	if err != nil {
		return nil, err
	}
	if !first {
		return state, asked.same(q, state)
	}
	state.Request, state.Assignment, state.Window = asked.times.Request, asked.times.Assignment, asked.times.Window
	state.Filters, state.Now = asked.filters(), s.now().Truncate(time.Microsecond)
	if state.Assignment != nil {
		assignment, err := s.deviceAssignment(ctx, c, device, *state.Assignment)
		if err != nil {
			return nil, err
		}
		state.Window = roomsensor.Expressible(asked.times.Within(&assignment).Intersect(untilNow(&assignment, state.Now)))
	}
	return state, nil
}

// untilNow returns the time before now if an assignment is open, and else all time (A0.3).
func untilNow(assignment *roomsensor.Assignment, now time.Time) roomsensor.Window {
	if assignment.EndedAt == nil {
		return roomsensor.Window{To: now}
	}
	return roomsensor.Window{To: roomsensor.Forever}
}

// same compares the parameters that were sent with a cursor with those of the first page (decision 12).
func (r *aggregateRequest) same(q httpedge.Query, state *cursor.State) error {
	filters := r.filters()
	times := r.times
	times.Rule = aggregate.Interval(state.Filters[intervalParameter]).Windows()
	return q.Compare(func(p httpedge.Parameter) bool {
		value, isFilter := filters[p.Name]
		return sameTime(p, times, state) && (!isFilter || value == state.Filters[p.Name])
	})
}
