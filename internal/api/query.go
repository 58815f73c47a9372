package api

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
)

const (
	keyParameter        = export.KeyParameter
	metricsParameter    = export.MetricsParameter
	fromParameter       = httpedge.FromParameter
	toParameter         = httpedge.ToParameter
	lastParameter       = httpedge.LastParameter
	assignmentParameter = httpedge.AssignmentParameter
	devicesParameter    = httpedge.DevicesParameter
	cursorParameter     = httpedge.CursorParameter
	limitParameter      = httpedge.LimitParameter
	metadataPrefix      = httpedge.MetadataPrefix
)

// query returns the parameters of a request (decision 6), of which known are all that the endpoint has.
func (c *call) query(known ...string) (httpedge.Query, error) {
	return httpedge.ParseQuery(c.Request().URL.RawQuery, known...)
}

// deviceID returns the id in the path (decision 7).
func (c *call) deviceID() (uuid.UUID, error) {
	return httpedge.ParseID("device_id", c.Param("device_id"))
}

// sameTime compares a parameter that was sent with a cursor with that of the first page, by value (decision 12). With
// last, from and to are ignored.
func sameTime(p httpedge.Parameter, times httpedge.TimeRange, state *cursor.State) bool {
	first := state.Request
	if first.IsZero() && state.Assignment == nil {
		first.Last = times.Rule.Default
	}
	switch p.Name {
	case lastParameter:
		return times.Request.Last == first.Last
	case fromParameter:
		return times.Request.Last > 0 || sameInstant(times.Request.From, first.From)
	case toParameter:
		return times.Request.Last > 0 || sameInstant(times.Request.To, first.To)
	case assignmentParameter:
		return state.Assignment != nil && *times.Assignment == *state.Assignment
	}
	return true
}

func sameInstant(a, b *time.Time) bool {
	return a != nil && b != nil && a.Equal(*b)
}
