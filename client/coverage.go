package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// CoverageQuery selects devices and the period in which their readings are expected.
type CoverageQuery struct {
	// Window is the period, by default the last 24 hours. It takes no assignment.
	Window Window
	// Metadata selects the devices that have all of these tags with exactly these values.
	Metadata map[string]string
	// ExternalRef selects the assignments with exactly this reference, each on its own device. Empty selects all devices.
	ExternalRef string
	// PageSize is the largest number of devices per request, at most 1000. 0 means 1000.
	PageSize int
}

// Coverage returns how many of the expected readings of each device arrived, in the order of the ids of devices.
func (c *Client) Coverage(ctx context.Context, q CoverageQuery) iter.Seq2[DeviceCoverage, error] {
	v := url.Values{}
	err := q.Window.add(v)
	addMetadata(v, q.Metadata)
	addText(v, "external_ref", q.ExternalRef)
	addLimit(v, q.PageSize)
	return list[DeviceCoverage](ctx, c, "/coverage", v, err)
}

// GapQuery selects gaps of one device.
type GapQuery struct {
	Window Window
	// Min leaves out shorter gaps, in whole minutes. 0 leaves out none.
	Min time.Duration
	// PageSize is the largest number of gaps per request, at most 1000. 0 means 1000.
	PageSize int
}

// Gaps returns the times in which a device has no readings although they are expected, newest first.
func (c *Client) Gaps(ctx context.Context, device uuid.UUID, q GapQuery) iter.Seq2[Gap, error] {
	v := url.Values{}
	err := q.Window.add(v)
	if err == nil {
		err = addMinutes(v, "min", q.Min)
	}
	addLimit(v, q.PageSize)
	return list[Gap](ctx, c, devicePath(device)+"/gaps", v, err)
}
