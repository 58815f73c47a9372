package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Two failures at once, every pair of them in which the first hides the second.
func TestOrderOfCursorChecks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fillLists(t, 3)
	f.addTeam(t, number(0x7e, 2))
	foreign := f.addKey(t, roomsensor.Key{TeamID: number(0x7e, 2), Scope: roomsensor.ScopeRead})
	other := "/devices/" + number(9, 9).String()
	cursors := f.firstCursors(t)
	type answer struct {
		sentence string
		code     roomsensor.Code
		param    string
	}
	invalid := answer{"decision 12.3", roomsensor.CodeCursorInvalid, "cursor"}
	expired := answer{"decision 12.4", roomsensor.CodeCursorInvalid, "cursor"}
	ofTeam := answer{"decision 12.5", roomsensor.CodeCursorTeamMismatch, "cursor"}
	ofDevice := answer{"decision 12.6", roomsensor.CodeCursorDeviceMismatch, "cursor"}
	differs := answer{"decision 12.7", roomsensor.CodeValidationFailed, "last"}
	tooFar := day + time.Microsecond
	for _, tc := range []struct {
		path, of, also string
		key            string
		age            time.Duration
		want           answer
	}{
		{readingsPath, "", "", f.readKey, 0, invalid},
		{other + "/readings", "", "&last=1h", foreign, 0, invalid},
		{readingsPath, "/devices", "", f.readKey, 0, invalid},
		{other + "/readings", assignmentsPath, "&last=1h", foreign, tooFar, invalid},
		{"/devices", readingsPath, "", foreign, 0, invalid},
		{"/devices", "/devices/current", "&metadata.a=b", f.readKey, 0, invalid},
		{readingsPath, readingsPath, "", f.readKey, tooFar, expired},
		{other + "/readings", readingsPath, "", f.key, tooFar, expired},
		{readingsPath, readingsPath, "&last=1h", f.key, tooFar, expired},
		{other + "/assignments", assignmentsPath, "", foreign, tooFar, expired},
		{"/devices", "/devices", "&metadata.a=b", foreign, tooFar, expired},
		{readingsPath, readingsPath, "", f.readKey, 0, ofTeam},
		{readingsPath, readingsPath, "", foreign, day, ofTeam},
		{other + "/readings", readingsPath, "", f.readKey, 0, ofTeam},
		{other + "/assignments", assignmentsPath, "", foreign, 0, ofTeam},
		{readingsPath, readingsPath, "&last=1h", foreign, 0, ofTeam},
		{"/devices", "/devices", "&metadata.a=b", f.readKey, 0, ofTeam},
		{"/devices/current", "/devices/current", "&metadata.a=b", foreign, 0, ofTeam},
		{other + "/readings", readingsPath, "", f.key, day, ofDevice},
		{other + "/readings", readingsPath, "&last=1h", f.key, 0, ofDevice},
		{other + "/assignments", assignmentsPath, "&limit=9", f.key, 0, ofDevice},
		{readingsPath, readingsPath, "&last=1h", f.key, day, differs},
	} {
		conformance.Covers(t, tc.want.sentence, "decision 11.3")
		f.clock.advance(tc.age)
		cursor := cursors[tc.of]
		if tc.of == "" {
			cursor = cursors[readingsPath][:20]
		}
		f.get(t, tc.path+"?cursor="+cursor+tc.also, withKey(tc.key)).requireError(t, tc.want.code, tc.want.param)
		f.get(t, tc.path+"?"+strings.TrimPrefix(tc.also+"&cursor="+cursor, "&"), withKey(tc.key)).requireError(t, tc.want.code, tc.want.param)
		f.clock.advance(-tc.age)
	}
}

// Every list is asked with the cursor of every other.
func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.3", "decision 12.3")
	f := setup(t)
	f.fillLists(t, 2)
	cursors := f.firstCursors(t)
	for path := range lists {
		for of, cursor := range cursors {
			got := f.get(t, path+"?cursor="+cursor)
			if path == of {
				require.Equal(t, http.StatusOK, got.status)
				continue
			}
			got.requireError(t, roomsensor.CodeCursorInvalid, "cursor")
		}
	}
}

// What the first page resolved stays, whatever happens to what it was made of.
func TestWalksKeepTheirWindow(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.4", "decision 12.1", "decision 12.2")
	f := setup(t)
	block := number(0xa5, 1)
	f.addAssignment(t, deviceID, block, start.Add(-day), nil)
	f.addReadings(t, deviceID, start.Add(-day), 288)
	for _, query := range []string{"", "last=24h", "last=1d&from=x", "from=" + before(day), "to=" + before(0), "assignment_id=" + block.String()} {
		cursor := f.firstCursor(t, readingsPath+"?limit=5&"+query)
		f.clock.advance(20 * time.Hour)
		f.exec(t, `UPDATE assignments SET ended_at = started_at + INTERVAL '1 hour'`)
		next := 282
		for _, page := range []struct {
			limit  string
			length int
		}{{"", 5}, {"&limit=7", 7}, {"", 7}, {"&limit=1000", 264}} {
			got := decode[list[reading]](t, f.get(t, readingsPath+"?cursor="+cursor+page.limit))
			require.Len(t, got.Data, page.length, "%s %s", query, page.limit)
			for _, n := range co2s(got) {
				require.Equal(t, next, n)
				next--
			}
			if got.NextCursor != nil {
				cursor = url.QueryEscape(*got.NextCursor)
			}
		}
		require.Equal(t, -1, next, "to the first bucket of the window")
		f.clock.advance(-20 * time.Hour)
		f.exec(t, `UPDATE assignments SET ended_at = NULL`)
	}
}

// Devices and blocks that come before, between and behind the pages that were read.
func TestWalksWhileDevicesAndAssignmentsArrive(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 13")
	f := setup(t)
	dice := rand.New(rand.NewPCG(1, 13)) // A seed of its own keeps it the same.
	for path, field := range map[string]string{
		"/devices": "device_id", "/devices/current": "device_id", assignmentsPath: "assignment_id",
	} {
		order := dice.Perm(40)
		there, arriving := order[:20], order[20:]
		for _, i := range there {
			f.arrive(t, path, i)
		}
		seen := map[string]int{}
		query := "limit=2"
		for query != "" {
			page := decode[list[map[string]any]](t, f.get(t, path+"?"+query))
			for _, item := range page.Data {
				seen[item[field].(string)]++
			}
			query = ""
			if page.NextCursor != nil {
				query = "cursor=" + *page.NextCursor
			}
			for range min(2, len(arriving)) {
				f.arrive(t, path, arriving[0])
				arriving = arriving[1:]
			}
		}
		for _, i := range there {
			require.Equal(t, 1, seen[placeOf(path, i)], "%s %d", path, i)
		}
		for id, times := range seen {
			require.Equal(t, 1, times, "%s %s", path, id)
		}
		require.Greater(t, len(seen), len(there), "some arrive ahead of the walk")
	}
}

// placeOf is the id of item i of a list.
func placeOf(path string, i int) string {
	prefix := map[string]byte{"/devices": 0x11, "/devices/current": 0x22, assignmentsPath: 0xa5}[path]
	return number(prefix, i).String()
}

// arrive adds item i of a list.
func (f *fixture) arrive(t *testing.T, path string, i int) {
	t.Helper()
	if path == assignmentsPath {
		begins := start.Add(time.Duration(i-100) * time.Hour)
		f.exec(t, `INSERT INTO assignments (id, device_id, type, label, started_at, ended_at) VALUES ($1, $2, 'place', 'Room', $3, $4)`,
			placeOf(path, i), deviceID, begins, begins.Add(time.Hour))
		return
	}
	f.exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, $3)`, placeOf(path, i), teamID, fmt.Sprintf("dev:%d", i))
}
