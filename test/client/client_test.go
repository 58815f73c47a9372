package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "sensors.example.org", "ftp://h", "http://", "http://h/v1?x=1", "http://h#x", "http://h:port", "127.0.0.1:8080"} {
		_, err := client.New(address, "rsk_x")
		require.ErrorContains(t, err, "is not of the form https://host/v1", address)
	}
	_, err := client.New("http://h", "")
	require.ErrorContains(t, err, "the key is empty")

	s := startFixture(t)
	for _, address := range []string{s.URL, s.URL + "/", s.URL + "/v1", s.URL + "/v1/"} {
		f := &faults{}
		c, err := client.New(address+"\n", s.Key+"\r\n", client.WithHTTPClient(&http.Client{Transport: f}), client.WithUserAgent("acme/1.4"))
		require.NoError(t, err)
		_, err = c.Team(t.Context())
		require.NoError(t, err, address)
		require.Equal(t, "acme/1.4 roomsensor-go", f.requests[0].UserAgent())
	}
}

// collect returns all items of a list.
func collect[T any](t *testing.T, items iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		all = append(all, item)
	}
	return all
}

// TestReads checks that every read returns all of the data, through all pages.
func TestReads(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, _ := newClient(t, s, f)
	ctx := t.Context()
	// pages requires that the types hold everything that n responses contain.
	pages := func(t *testing.T, n int, items any) {
		t.Helper()
		require.Len(t, f.answers, n)
		joined := []json.RawMessage{}
		for _, answer := range f.answers {
			var page struct {
				Data []json.RawMessage `json:"data"`
			}
			require.NoError(t, json.Unmarshal(answer, &page))
			joined = append(joined, page.Data...)
		}
		f.answers = nil
		expected, err := json.Marshal(joined)
		require.NoError(t, err)
		decoded, err := json.Marshal(items)
		require.NoError(t, err)
		require.JSONEq(t, string(expected), string(decoded))
	}

	team, err := c.Team(ctx)
	require.NoError(t, err)
	require.Equal(t, s.Team, team.Team.ID)
	require.Equal(t, []client.Scope{client.ScopeReadWrite}, team.APIKey.Scopes)
	f.answers = nil

	devices := collect(t, c.Devices(ctx, client.DeviceQuery{PageSize: 1}))
	require.Len(t, devices, 2)
	pages(t, 2, devices)
	require.Equal(t, -87, *devices[0].Signal.RSSIDBM)
	require.Nil(t, devices[1].DisplayName)
	require.Nil(t, devices[1].LastSeenAt)
	device, err := c.Device(ctx, weightRoom)
	require.NoError(t, err)
	require.Equal(t, devices[0], device)
	f.answers = nil

	current := collect(t, c.CurrentDevices(ctx, client.DeviceQuery{Metadata: map[string]string{"building": "gym"}}))
	require.Len(t, current, 1)
	pages(t, 1, current)
	require.Equal(t, 601.0, *current[0].Latest.CO2PPM)

	assignments := collect(t, c.Assignments(ctx, weightRoom))
	require.Len(t, assignments, 2)
	pages(t, 1, assignments)
	require.Equal(t, client.AssignmentTypeAthlete, assignments[1].Type)

	all := collect(t, c.TeamAssignments(ctx, client.AssignmentQuery{Window: november1, PageSize: 1}))
	require.Len(t, all, 2)
	pages(t, 2, all)
	require.Equal(t, "Weight room", *all[0].DisplayName)
	require.Equal(t, "A. Runner", collect(t, c.TeamAssignments(ctx, client.AssignmentQuery{
		Window: november1, ExternalRef: "crm-7", Label: "A. Runner", Type: client.AssignmentTypeAthlete,
		Metadata: map[string]string{"building": "gym"},
	}))[0].Label)
	require.Len(t, collect(t, c.TeamAssignments(ctx, client.AssignmentQuery{})), 1, "open now")
	f.answers = nil

	readings := collect(t, c.Readings(ctx, weightRoom, client.ReadingQuery{Window: november1, PageSize: 2}))
	require.Len(t, readings, 3)
	pages(t, 2, readings)
	require.Equal(t, 21.4, *readings[2].TempC, "not a float32")

	hours := collect(t, c.Aggregates(ctx, weightRoom, client.AggregateQuery{Window: november1, Interval: client.Hourly, PageSize: 20}))
	require.Len(t, hours, 24)
	pages(t, 2, hours)
	require.Equal(t, 612.0, *hours[23].CO2PPM.Max)
	days := collect(t, c.Aggregates(ctx, weightRoom, client.AggregateQuery{
		Window: november1, Interval: client.Daily, TimeZone: "Europe/Berlin", Metrics: []client.Metric{client.Lux},
	}))
	require.Len(t, days, 2)
	pages(t, 1, days)
	require.Nil(t, days[0].CO2PPM)

	night := client.NightQuery{From: november1.From.AddDate(0, 0, -1), To: november1.From, PageSize: 1}
	nights := collect(t, c.Nights(ctx, night))
	require.Len(t, nights, 3)
	pages(t, 3, nights)
	require.Equal(t, client.VerdictUnknown, nights[1].Verdict)
	require.Equal(t, 612.0, *nights[1].CO2PPM.Max)
	night.ExternalRef, night.Metadata = "crm-7", map[string]string{"building": "gym"}
	require.Equal(t, nights[1:2], collect(t, c.Nights(ctx, night)))
	f.answers = nil

	coverage := collect(t, c.Coverage(ctx, client.CoverageQuery{Window: november1, PageSize: 1}))
	require.Len(t, coverage, 2)
	pages(t, 2, coverage)
	require.Equal(t, client.MetricCounts{CO2PPM: 3, TempC: 3, HumidityPct: 2, Lux: 3, SPLDB: 2}, coverage[0].Metrics)
	require.Equal(t, 285, coverage[0].LongestGap.Missing)
	require.Len(t, collect(t, c.Coverage(ctx, client.CoverageQuery{Metadata: map[string]string{"building": "gym"}})), 1)
	f.answers = nil

	gaps := collect(t, c.Gaps(ctx, weightRoom, client.GapQuery{Window: november1}))
	require.Len(t, gaps, 1)
	pages(t, 1, gaps)
	require.Equal(t, *coverage[0].LongestGap, gaps[0])
	require.Empty(t, collect(t, c.Gaps(ctx, weightRoom, client.GapQuery{Window: november1, Min: 24 * time.Hour, PageSize: 5})))
	f.answers = nil

	for _, err := range c.Readings(ctx, weightRoom, client.ReadingQuery{Window: november1, PageSize: 1}) {
		require.NoError(t, err)
		break
	}
	require.Len(t, f.answers, 1, "the next page is not requested before it is needed")
}

func TestWindow(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	assignment := uuid.MustParse("2a64f7d0-7b0f-4c0e-8b53-64c1f2a9d7e8")
	at := time.Date(2024, 11, 1, 1, 5, 0, 123456789, time.FixedZone("CET", 3600))
	for query, w := range map[string]client.Window{
		"":         {},
		"last=90m": client.Last(90 * time.Minute),
		"from=2024-11-01T00%3A05%3A00.123456Z&to=2024-11-01T01%3A05%3A00.123456Z": client.Between(at, at.Add(time.Hour)),
		"to=2024-11-01T00%3A05%3A00.123456Z":                                      {To: at},
		"assignment_id=2a64f7d0-7b0f-4c0e-8b53-64c1f2a9d7e8":                      {Assignment: assignment},
	} {
		f := &faults{}
		c, _ := newClient(t, s, f)
		collect(t, c.Readings(t.Context(), weightRoom, client.ReadingQuery{Window: w}))
		require.Equal(t, query, f.requests[0].URL.RawQuery)
	}
	f := &faults{}
	c, _ := newClient(t, s, f)
	for _, err := range c.Readings(t.Context(), weightRoom, client.ReadingQuery{Window: client.Last(90 * time.Second)}) {
		require.ErrorContains(t, err, "whole minutes")
	}
	for _, err := range c.Gaps(t.Context(), weightRoom, client.GapQuery{Min: time.Second}) {
		require.ErrorContains(t, err, "min must be whole minutes")
	}
	_, err := c.ExportCSV(t.Context(), client.ExportQuery{Window: client.Last(time.Second)})
	require.ErrorContains(t, err, "whole minutes")
	require.Empty(t, f.requests)
}

func TestUpdateDevice(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, _ := newClient(t, s, f)
	for _, tc := range []struct {
		change client.DeviceChange
		body   string
		name   *string
		tags   map[string]string
	}{
		{client.DeviceChange{DisplayName: new("Gym")}, `{"display_name":"Gym"}`, new("Gym"), map[string]string{"building": "gym"}},
		{client.DeviceChange{DisplayName: new("")}, `{"display_name":null}`, nil, map[string]string{"building": "gym"}},
		{
			client.DeviceChange{Metadata: map[string]*string{"building": nil, "floor": new("2")}},
			`{"metadata":{"building":null,"floor":"2"}}`, nil,
			map[string]string{"floor": "2"},
		},
		{client.DeviceChange{ClearMetadata: true, DisplayName: new("A")}, `{"display_name":"A","metadata":null}`, new("A"), map[string]string{}},
	} {
		device, err := c.UpdateDevice(t.Context(), weightRoom, tc.change)
		require.NoError(t, err)
		require.Equal(t, tc.name, device.DisplayName)
		require.Equal(t, tc.tags, device.Metadata)
		require.JSONEq(t, tc.body, f.bodies[len(f.bodies)-1])
	}
	_, err := c.UpdateDevice(t.Context(), weightRoom, client.DeviceChange{})
	require.True(t, client.HasCode(err, client.CodeValidationFailed), err)
	_, err = c.UpdateDevice(t.Context(), weightRoom, client.DeviceChange{ClearMetadata: true, Metadata: map[string]*string{"a": nil}})
	require.ErrorContains(t, err, "both")

	t.Run("a lost response runs the change once", func(t *testing.T) {
		f := &faults{fault: []func(*http.Response) (*http.Response, error){
			func(*http.Response) (*http.Response, error) { return nil, errBroken },
		}}
		c, _ := newClient(t, s, f)
		_, err := c.UpdateDevice(t.Context(), weightRoom, client.DeviceChange{DisplayName: new("B")})
		require.NoError(t, err)
		require.Len(t, f.requests, 2)
		require.NotEmpty(t, f.requests[0].Header.Get("Idempotency-Key"))
		require.Equal(t, f.requests[0].Header.Get("Idempotency-Key"), f.requests[1].Header.Get("Idempotency-Key"))
		require.Equal(t, f.answers[0], f.answers[1])

		for range 2 {
			_, err := c.UpdateDevice(t.Context(), dorm, client.DeviceChange{DisplayName: new("C"), IdempotencyKey: "mine"})
			require.NoError(t, err)
			require.Equal(t, "mine", f.requests[len(f.requests)-1].Header.Get("Idempotency-Key"))
		}
	})
}

var errBroken = errors.New("the connection broke")

func TestError(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, _ := newClient(t, s, f)
	_, err := c.Device(t.Context(), uuid.New())
	e, ok := errors.AsType[*client.Error](fmt.Errorf("reading: %w", err))
	require.True(t, ok)
	require.Equal(t, http.StatusNotFound, e.Status)
	require.Equal(t, client.CodeDeviceNotFound, e.Code)
	require.Equal(t, "device_id", e.Param)
	require.Equal(t, s.URL+"/docs/errors/device_not_found", e.DocURL)
	require.Regexp(t, `^device_not_found: .+ \(req_\w+\)$`, e.Error())
	require.Zero(t, e.RetryAfter)
	require.False(t, client.HasCode(nil, client.CodeDeviceNotFound))

	c, err = client.New(s.URL, "rsk_wrong", client.WithHTTPClient(&http.Client{Transport: f}))
	require.NoError(t, err)
	_, err = c.CountReadings(t.Context(), client.ExportQuery{})
	require.True(t, client.HasCode(err, client.CodeAPIKeyInvalid), "HEAD has no body: %v", err)
	for _, err := range c.Devices(t.Context(), client.DeviceQuery{}) {
		require.True(t, client.HasCode(err, client.CodeAPIKeyInvalid))
	}
}
