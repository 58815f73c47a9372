package client_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
)

// csv returns an export of November 1.
func csv(t *testing.T, c *client.Client, q client.ExportQuery) (*client.Export, string, error) {
	t.Helper()
	q.Window = november1
	e, err := c.ExportCSV(t.Context(), q)
	require.NoError(t, err)
	text, err := io.ReadAll(e)
	require.NoError(t, e.Close())
	return e, string(text), err
}

func TestExportCSV(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	c, _ := newClient(t, s, &faults{})
	e, text, err := csv(t, c, client.ExportQuery{})
	require.NoError(t, err)
	require.Equal(t, 4, e.Rows)
	require.Equal(t, "readings_20241101T000000Z_20241102T000000Z.csv", e.Name)
	require.Equal(t, 5, strings.Count(text, "\n"))
	require.NotEmpty(t, e.Header.Get("X-Request-Id"))
	n, err := c.CountReadings(t.Context(), client.ExportQuery{Window: november1, Devices: []uuid.UUID{dorm}})
	require.NoError(t, err)
	require.Equal(t, 1, n)

	for header, q := range map[string]client.ExportQuery{
		"bucket_at,device_id,display_name,temp_c,valid_mask,ingested_at\n": {
			Metrics: []client.Metric{client.TempC}, IngestedAt: true, Metadata: map[string]string{"building": "gym"},
		},
		"bucket_at," + dorm.String() + ".lux\n": {
			Shape: client.Wide, ColumnIDs: true, Devices: []uuid.UUID{dorm}, Metrics: []client.Metric{client.Lux},
		},
	} {
		_, text, err := csv(t, c, q)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(text, header), text)
	}

	_, err = c.ExportCSV(t.Context(), client.ExportQuery{Devices: []uuid.UUID{}})
	require.True(t, client.HasCode(err, client.CodeValidationFailed), "no device is not all devices: %v", err)
	_, err = c.CountReadings(t.Context(), client.ExportQuery{Window: client.Last(100 * 24 * time.Hour)})
	require.True(t, client.HasCode(err, client.CodeTimeRangeTooWide), err)
}

// TestExportTruncated checks that no incomplete export ends without an error.
func TestExportTruncated(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	s.Exec(t, `UPDATE devices SET display_name = E'Say "hi",\nroom' WHERE id = $1`, dorm)
	whole := func(r *http.Response) (*http.Response, error) { return r, nil }
	short := func(n int) func(*http.Response) (*http.Response, error) {
		return func(r *http.Response) (*http.Response, error) {
			text, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(iotest.OneByteReader(bytes.NewReader(text[:len(text)-n])))
			return r, err
		}
	}
	for name, tc := range map[string]struct {
		fault     func(*http.Response) (*http.Response, error)
		truncated bool
	}{
		"complete":                    {whole, false},
		"a quoted line feed":          {short(0), false},
		"a broken connection":         {cut, true},
		"an end before the last line": {short(1), true},
		"an end inside quotes":        {short(30), true},
		"no header X-Row-Count": {func(r *http.Response) (*http.Response, error) {
			r.Header.Del("X-Row-Count")
			return r, nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newClient(t, s, &faults{fault: []func(*http.Response) (*http.Response, error){tc.fault}})
			e, text, err := csv(t, c, client.ExportQuery{})
			if !tc.truncated {
				require.NoError(t, err)
				require.Contains(t, text, `"Say ""hi"",`+"\nroom\"")
				return
			}
			require.ErrorIs(t, err, client.ErrTruncated)
			_, err = e.Read(make([]byte, 1))
			require.ErrorIs(t, err, client.ErrTruncated, "again")
		})
	}
}

func TestExportReadings(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, _ := newClient(t, s, f)
	query := client.ExportQuery{Window: november1, Devices: []uuid.UUID{weightRoom}}
	exported := collect(t, c.ExportReadings(t.Context(), query))
	var listed []client.DeviceReading
	for _, r := range collect(t, c.Readings(t.Context(), weightRoom, client.ReadingQuery{Window: november1})) {
		listed = append([]client.DeviceReading{{DeviceID: weightRoom, Reading: r}}, listed...)
	}
	require.Equal(t, listed, exported, "the same as in pages, oldest first")

	query.Metrics = []client.Metric{client.Lux}
	for r, err := range c.ExportReadings(t.Context(), query) {
		require.NoError(t, err)
		require.Nil(t, r.CO2PPM)
		require.NotNil(t, r.Lux)
		break
	}
	for _, q := range []client.ExportQuery{{Shape: client.Wide}, {Window: client.Last(time.Second)}} {
		for _, err := range c.ExportReadings(t.Context(), q) {
			require.Error(t, err)
		}
	}
	for _, replacement := range []string{
		"", "device_id,lux\nx,1\n", "bucket_at,device_id\n,x\n", "bucket_at,device_id\nx,\n",
		"lux,bucket_at,device_id\nx,2026-11-20T12:00:00Z," + weightRoom.String() + "\n",
	} {
		f.fault = []func(*http.Response) (*http.Response, error){func(r *http.Response) (*http.Response, error) {
			r.Body = io.NopCloser(strings.NewReader(replacement))
			r.Header.Set("X-Row-Count", "1")
			return r, nil
		}}
		var last error
		for _, err := range c.ExportReadings(t.Context(), query) {
			last = err
		}
		require.ErrorContains(t, last, "reading an export", replacement)
	}
}

func TestExportParquet(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{fault: []func(*http.Response) (*http.Response, error){nil, func(r *http.Response) (*http.Response, error) {
		text, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text[:len(text)-1]))
		return r, err
	}}}
	c, _ := newClient(t, s, f)
	query := client.ExportQuery{Window: november1, Metadata: map[string]string{"building": "gym"}}
	for i, expected := range []error{nil, client.ErrTruncated} {
		e, err := c.ExportParquet(t.Context(), query)
		require.NoError(t, err)
		require.Equal(t, 3, e.Rows)
		require.Equal(t, "readings_20241101T000000Z_20241102T000000Z.parquet", e.Name)
		text, err := io.ReadAll(e)
		require.ErrorIs(t, err, expected)
		require.NoError(t, e.Close())
		require.Equal(t, f.answers[i][:len(text)], text)
	}
	_, err := c.ExportParquet(t.Context(), client.ExportQuery{Shape: client.Wide})
	require.True(t, client.HasCode(err, client.CodeValidationFailed), err)
	_, err = c.ExportParquet(t.Context(), client.ExportQuery{Window: client.Last(time.Second)})
	require.ErrorContains(t, err, "whole minutes")
}

func TestExportAggregatesCSV(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	c, _ := newClient(t, s, &faults{})
	query := client.AggregateExportQuery{
		AggregateQuery: client.AggregateQuery{Window: november1, Interval: client.Hourly, Metrics: []client.Metric{client.Lux}},
		Devices:        []uuid.UUID{weightRoom}, Metadata: map[string]string{"building": "gym"},
	}
	for _, fill := range []bool{false, true} {
		query.Fill = fill
		e, err := c.ExportAggregatesCSV(t.Context(), query)
		require.NoError(t, err)
		text, err := io.ReadAll(e)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		require.Equal(t, map[bool]int{false: 1, true: 24}[fill], e.Rows)
		require.Contains(t, string(text), ",lux_mean,lux_count\n2024-11-01T00:00:00Z,2024-11-01T01:00:00Z,"+weightRoom.String()+",Weight room,12,3,")
	}
	_, err := c.ExportAggregatesCSV(t.Context(), client.AggregateExportQuery{})
	require.True(t, client.HasCode(err, client.CodeValidationFailed), err)
	query.Window = client.Last(time.Second)
	_, err = c.ExportAggregatesCSV(t.Context(), query)
	require.ErrorContains(t, err, "whole minutes")
}
