package client_test

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/test/openapitest"
)

// TestOperations checks that the client has every operation of the OpenAPI document.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, _ := newClient(t, s, f)
	ctx := t.Context()
	for _, call := range []func() error{
		func() error { _, err := c.Team(ctx); return err },
		func() error { _, err := c.Device(ctx, dorm); return err },
		func() error {
			_, err := c.UpdateDevice(ctx, dorm, client.DeviceChange{ClearMetadata: true})
			return err
		},
		func() error { return first(c.Devices(ctx, client.DeviceQuery{})) },
		func() error { return first(c.CurrentDevices(ctx, client.DeviceQuery{})) },
		func() error { return first(c.Assignments(ctx, dorm)) },
		func() error { return first(c.TeamAssignments(ctx, client.AssignmentQuery{})) },
		func() error { return first(c.Readings(ctx, dorm, client.ReadingQuery{})) },
		func() error { return first(c.Aggregates(ctx, dorm, client.AggregateQuery{Interval: client.Hourly})) },
		func() error { return first(c.Gaps(ctx, dorm, client.GapQuery{})) },
		func() error { return first(c.Coverage(ctx, client.CoverageQuery{})) },
		func() error { return first(c.Nights(ctx, client.NightQuery{})) },
		func() error { return closed(c.ExportNightsCSV(ctx, client.NightQuery{})) },
		func() error { return first(c.Follow(ctx, client.ChangeQuery{}, "")) },
		func() error { return closed(c.ExportCSV(ctx, client.ExportQuery{})) },
		func() error { return closed(c.ExportParquet(ctx, client.ExportQuery{})) },
		func() error {
			return closed(c.ExportAggregatesCSV(ctx, client.AggregateExportQuery{
				AggregateQuery: client.AggregateQuery{Interval: client.Daily},
			}))
		},
	} {
		require.NoError(t, call())
	}
	var called, expected []string
	for _, r := range f.requests {
		called = append(called, r.Method+" "+openapitest.API().Match(r.URL))
	}
	for _, operation := range openapitest.API().Operations() {
		if !strings.HasPrefix(operation, "HEAD ") && operation != "GET /metrics" { // It is text for Prometheus.
			expected = append(expected, operation)
		}
	}
	slices.Sort(called)
	require.Equal(t, expected, called)
}

// first requests the first page of a list.
func first[T any](items iter.Seq2[T, error]) error {
	for _, err := range items {
		return err
	}
	return nil
}

func closed(e *client.Export, err error) error {
	if err != nil {
		return err
	}
	return e.Close()
}
