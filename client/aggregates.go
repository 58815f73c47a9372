package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/google/uuid"
)

// Interval is the length of the buckets of aggregates.
type Interval string

// The intervals.
const (
	Hourly Interval = "1h" // UTC hours
	Daily  Interval = "1d" // dates in the time zone
)

// AggregateQuery selects aggregates of one device.
type AggregateQuery struct {
	// Window has at most 400 days of hours, or 3660 of days. By default, it has the last 24 hours, or the last 30 days.
	Window Window
	// Interval is Hourly or Daily.
	Interval Interval
	// TimeZone is the IANA name of the time zone of dates, such as Europe/Berlin. Empty means UTC.
	TimeZone string
	// Metrics are the metrics that an aggregate has. nil means all.
	Metrics []Metric
	// PageSize is the number of aggregates per request, at most 1000. 0 means 1000.
	PageSize int
}

func (q AggregateQuery) values() (url.Values, error) {
	v := url.Values{"interval": {string(q.Interval)}}
	addText(v, "time_zone", q.TimeZone)
	addList(v, "metrics", q.Metrics)
	addLimit(v, q.PageSize)
	return v, q.Window.add(v)
}

// Aggregates returns minimum, maximum, mean and count of each metric of a device by hour or by day, newest first. An
// hour or day without readings is there too.
func (c *Client) Aggregates(ctx context.Context, device uuid.UUID, q AggregateQuery) iter.Seq2[Aggregate, error] {
	v, err := q.values()
	return list[Aggregate](ctx, c, devicePath(device)+"/aggregates", v, err)
}

// AggregateExportQuery selects the aggregates of an export: at most 250,000.
type AggregateExportQuery struct {
	// AggregateQuery selects the aggregates of each device. PageSize must be 0.
	AggregateQuery
	// Devices are at most 1000 devices. nil means all devices of the team.
	Devices []uuid.UUID
	// Metadata leaves out the devices that do not have all of these tags with exactly these values.
	Metadata map[string]string
	// ExternalRef selects the readings of the assignments with exactly this reference, each on its own device and within
	// its own time. Send it without Devices and without an assignment. Empty selects all readings.
	ExternalRef string
	// Fill adds the hours or days without readings.
	Fill bool
}

// ExportAggregatesCSV requests the aggregates of many devices as CSV, ordered by time and then by device. The caller
// reads and closes the export.
func (c *Client) ExportAggregatesCSV(ctx context.Context, q AggregateExportQuery) (*Export, error) {
	v, err := q.values()
	if err != nil {
		return nil, err
	}
	addList(v, "devices", q.Devices)
	addMetadata(v, q.Metadata)
	addText(v, "external_ref", q.ExternalRef)
	if q.Fill {
		v.Set("fill", "true")
	}
	return c.exportCSV(ctx, "/aggregates.csv", v)
}
