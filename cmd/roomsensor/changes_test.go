package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/apitest"
	"roomsensor/test/proctest"
)

var nextCursor = regexp.MustCompile(`changes: continue with --since (\S+)\n$`)

// changed returns the times of the printed changes and the cursor after them.
func changed(t *testing.T, r result) (times []string, cursor string) {
	t.Helper()
	require.Equal(t, cli.ExitOK, r.code, r.err)
	for line := range strings.Lines(r.out) {
		var item map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &item))
		require.Len(t, item, 8)
		times = append(times, item["bucket_at"].(string))
	}
	found := nextCursor.FindStringSubmatch(r.err)
	require.NotNil(t, found, r.err)
	return times, found[1]
}

// awaitChanges prints changes until there are n: they are visible a little after they are committed.
func (o *operator) awaitChanges(n int, since string) (times []string, cursor string) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		times, cursor = changed(o.t, o.run("get", "changes", "--since", since))
		return len(times) >= n
	}, proctest.Patience, 100*time.Millisecond)
	require.Len(o.t, times, n)
	return times, cursor
}

func TestGetChanges(t *testing.T) {
	t.Parallel()
	o, a := newClient(t)
	devices := a.AddDevices(t, 2)
	newYear := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	since := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	a.AddReadings(t, devices, newYear, 600, 5*time.Minute) // Two pages.
	a.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at) VALUES ($1, 'place', 'Gym', 'crm-7', '2025-01-01Z')`, devices[0])
	a.Exec(t, `UPDATE devices SET metadata = '{"floor":"2"}' WHERE id = $1`, devices[1])

	_, now := changed(t, o.run("get", "changes"))
	_, cursor := o.awaitChanges(1200, since)
	a.AddReadings(t, devices, newYear.AddDate(0, 0, -1), 1, time.Hour)
	late, _ := o.awaitChanges(2, cursor)
	require.Equal(t, []string{"2025-12-31T00:00:00Z", "2025-12-31T00:00:00Z"}, late)
	late, _ = changed(t, o.run("get", "changes", "--since", now))
	require.Contains(t, late, "2025-12-31T00:00:00Z")
	for _, flags := range [][]string{{"--devices", "Room 2"}, {"--devices", devices[0].String()}, {"--metadata", "floor=2"}, {"--external-ref", "crm-7"}} {
		some, _ := changed(t, o.run(append([]string{"get", "changes", "--since", since}, flags...)...))
		require.Len(t, some, 601)
	}
	table := o.run("get", "changes", "--since", since, "--output", "table", "--devices", "Room 1")
	require.Regexp(t, `^BUCKET_AT +CO2_PPM .* DEVICE_ID\n`, table.out)
	require.Equal(t, 602, strings.Count(table.out, "\n"))
	require.Regexp(t, nextCursor, table.err)

	a.DeleteReadings(t, devices[0], newYear, newYear.AddDate(0, 0, 1))
	require.Eventually(t, func() bool {
		r := o.run("get", "changes", "--since", since, "--deletions")
		require.Equal(t, cli.ExitOK, r.code, r.err)
		return strings.HasPrefix(r.out, `{"device_id":"`+devices[0].String()+
			`","from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","deleted_at":"2`)
	}, proctest.Patience, 100*time.Millisecond)
	o.fails(cli.ExitUsage, "--deletions prints one object per line", "get", "changes", "--deletions", "--output", "table")

	o.fails(cli.ExitFailure, "cursor_invalid: ", "get", "changes", "--since", strings.Repeat("x", 100))
	o.fails(cli.ExitFailure, "time_range_too_wide: ", "get", "changes", "--since", "2020-01-01")
	o.fails(cli.ExitFailure, "The team has no device \"Attic\"", "get", "changes", "--devices", "Attic")
	o.fails(cli.ExitUsage, "--since: \"yesterday\" is neither a UTC time with seconds and Z nor a date", "get", "changes", "--since", "yesterday")
	o.fails(cli.ExitUsage, "--follow prints one object per line", "get", "changes", "--follow", "--output", "table")
}

// A command that follows prints changes as they arrive, and ends with Ctrl-C without an error. After an error, too, the
// cursor is that after the printed changes.
func TestGetChangesEnds(t *testing.T) {
	t.Parallel()
	o, a := newClient(t)
	devices := a.AddDevices(t, 1)
	since := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	a.AddReadings(t, devices, time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), 1001, 5*time.Minute)
	o.awaitChanges(1001, since)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	followed := func(out *bytes.Buffer) {
		switch strings.Count(out.String(), "\n") {
		case 1001:
			a.AddReadings(t, devices, time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC), 1, time.Hour)
		case 1002:
			interrupt()
		}
	}
	out := &watched{then: followed}
	var stderr bytes.Buffer
	code := program().Run(ctx, []string{"get", "changes", "--since", since, "--follow"},
		func(name string) string { return o.environment[name] }, strings.NewReader(""), out, &stderr)
	times, cursor := changed(t, result{code, out.String(), stderr.String()})
	require.Equal(t, "2025-01-01T00:00:00Z", times[1001])
	rest, _ := changed(t, o.run("get", "changes", "--since", cursor))
	require.Empty(t, rest)

	o.environment["ROOMSENSOR_URL"] = apitest.Proxy(t, a.URL, func(n int64, w http.ResponseWriter, _ *http.Request) bool {
		if n > 1 {
			apitest.Fail(w, http.StatusForbidden, "insufficient_scope")
		}
		return n > 1
	})
	broken := o.run("get", "changes", "--since", since)
	require.Equal(t, cli.ExitFailure, broken.code)
	require.Equal(t, 1000, strings.Count(broken.out, "\n"))
	found := regexp.MustCompile(`^changes: continue with --since (\S+)\nroomsensor: insufficient_scope`).FindStringSubmatch(broken.err)
	require.NotNil(t, found, broken.err)
	o.environment["ROOMSENSOR_URL"] = a.URL
	rest, _ = changed(t, o.run("get", "changes", "--since", found[1]))
	require.Len(t, rest, 2)
}

// watched calls a function after each write.
type watched struct {
	bytes.Buffer

	then func(out *bytes.Buffer)
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.Buffer.Write(text)
	w.then(&w.Buffer)
	return n, err
}
