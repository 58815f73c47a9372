package client

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// NightQuery selects assignments in nights. A night is named after the date on which it begins in the time zone of the
// team, of which a time.Time has the year, the month and the day.
type NightQuery struct {
	// From and To are the first and the last night, at most 92 with those between. The zero From means the last night
	// alone, the zero To up to the last night.
	From, To time.Time
	// ExternalRef is what the assignments have exactly. Empty means any.
	ExternalRef string
	// Metadata selects the assignments of devices that have all of these tags with exactly these values.
	Metadata map[string]string
	// PageSize is the number of items per request, at most 1000. 0 means 1000.
	PageSize int
}

func (q NightQuery) values() url.Values {
	v := url.Values{}
	if !q.From.IsZero() {
		v.Set("from_night", q.From.Format(time.DateOnly))
	}
	if !q.To.IsZero() {
		v.Set("to_night", q.To.Format(time.DateOnly))
	}
	addText(v, "external_ref", q.ExternalRef)
	addMetadata(v, q.Metadata)
	addLimit(v, q.PageSize)
	return v
}

// Nights returns what was measured in assignments in nights, with the verdict on the air: the newest night first, and
// in a night the worst first.
func (c *Client) Nights(ctx context.Context, q NightQuery) iter.Seq2[Night, error] {
	return list[Night](ctx, c, "/nights", q.values(), nil)
}

// ExportNightsCSV requests nights as CSV, in the order of Nights. PageSize must be 0. The caller reads and closes the
// export.
func (c *Client) ExportNightsCSV(ctx context.Context, q NightQuery) (*Export, error) {
	return c.exportCSV(ctx, "/nights.csv", q.values())
}
