package api_test

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// lists are the paths of all lists, with the query that selects everything that fillLists adds.
var lists = map[string]string{
	"/devices": "", "/devices/current": "", assignmentsPath: "", readingsPath: "last=90d&", "/coverage": "", gapsPath: "last=90d&",
	"/assignments": "last=90d&", "/nights": allNights,
}

// allNights selects the night with all assignments of fillLists.
const allNights = "from_night=2026-11-18&to_night=2026-11-19&"

// fillLists gives every list n items. The nights of the team are from noon to noon.
func (f *fixture) fillLists(t *testing.T, n int) {
	t.Helper()
	f.addDevices(t, n)
	f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
		SELECT $1, 'place', 'Room', $2::timestamptz - i * INTERVAL '1 minute', $2::timestamptz - (i - 1) * INTERVAL '1 minute'
		FROM generate_series(1, $3::int) i`, deviceID, start, n)
	f.exec(t, `UPDATE teams SET (night_start, night_end) = ('12:00', '11:59')`)
	// Every other bucket has a reading.
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at)
		SELECT $1, $2::timestamptz - i * INTERVAL '10 minutes' + INTERVAL '5 minutes', i, $2 FROM generate_series(1, $3::int) i`,
		deviceID, start, n)
}

func TestListEnvelope(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 9 a", "decision 9 b", "decision 9 c", "spec 4, devices, response", "spec 4, readings, response")
	f := setup(t)
	f.fillLists(t, 2)
	for path, all := range lists {
		require.Regexp(t, `^\{"data":\[\{.+\},\{.+\}\],"next_cursor":null\}$`, string(f.get(t, path+"?"+all).body))
		require.Regexp(t, `^\{"data":\[\{.+\}\],"next_cursor":"[A-Za-z0-9_-]+"\}$`, string(f.get(t, path+"?limit=1&"+all).body))
		last := f.get(t, path+"?cursor="+f.firstCursor(t, path+"?limit=1&"+all))
		require.Regexp(t, `^\{"data":\[\{.+\}\],"next_cursor":null\}$`, string(last.body))
	}
	f.exec(t, `DELETE FROM assignments`)
	for _, path := range []string{"/devices?metadata.x=y", "/devices/current?metadata.x=y", assignmentsPath, readingsPath + "?last=1m", "/coverage?metadata.x=y", gapsPath + "?last=1m", "/assignments", "/nights?" + allNights} {
		require.JSONEq(t, `{"data":[],"next_cursor":null}`, string(f.get(t, path).body), path)
	}
}

// Pages of any size have every item once, in the order of decision 10.
func TestPageSizesAndOrder(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 9 d", "decision 9 e", "decision 10 a", "decision 10 b", "decision 10 c", "spec 8, page_size",
		"spec 4, devices, list", "spec 4, devices, cursor", "spec 4, devices, page", "spec 4, assignments, list",
		"spec 4, readings, cursor", "spec 4, readings, page")
	f := setup(t)
	f.fillLists(t, 1001)
	for path, all := range lists {
		field := map[string]string{assignmentsPath: "started_at", "/assignments": "started_at", "/nights": "from", readingsPath: "bucket_at", gapsPath: "from"}[path]
		for query, sizes := range map[string][]int{"": {1000, 1}, "limit=501&": {501, 500}} {
			var got []int
			var values []string
			for _, page := range allPages[item](t, f, path, query+all) {
				got = append(got, len(page.Data))
				for _, i := range page.Data {
					values = append(values, fmt.Sprint(i[cmp.Or(field, "device_id")]))
				}
			}
			if path == "/coverage" {
				requirePageSizes(t, sizes, got, query)
			} else {
				require.Equal(t, sizes, got, "%s %s", path, query)
			}
			switch {
			case path == "/nights": // TestNightPages checks their order.
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(values))), 1001, query)
			case field == "":
				require.IsIncreasing(t, values)
			default:
				require.IsDecreasing(t, values)
			}
		}
	}

	// Assignments that start at the same time, which the constraint prevents, are ordered by id.
	f.exec(t, `DELETE FROM assignments`)
	f.exec(t, `ALTER TABLE assignments DROP CONSTRAINT assignments_no_overlap`)
	want := make([]string, 12)
	for _, i := range rand.New(rand.NewPCG(1, 11)).Perm(len(want)) {
		want[i] = testID(0xa5, i).String()
		begins := start.Add(-time.Duration(i/4) * time.Hour)
		f.addAssignment(t, deviceID, testID(0xa5, i), begins, new(begins.Add(time.Duration(i+1)*time.Hour)))
	}
	for _, limit := range []string{"", "limit=1", "limit=2", "limit=3", "limit=4", "limit=5", "limit=12"} {
		require.Equal(t, want, allValues(t, f, assignmentsPath, limit, "assignment_id"), limit)
		require.Equal(t, want, allValues(t, f, "/assignments", "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z&"+limit, "assignment_id"), limit)
	}
}

// A page ends before the item with which its body, next_cursor included, would exceed 8 MiB.
func TestPageBytes(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 52")
	f := setup(t)
	f.addDevices(t, 50)
	f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
		SELECT $1, 'place', repeat('x', 180000), $2::timestamptz - i * INTERVAL '1 day', $2::timestamptz - (i - 1) * INTERVAL '1 day'
		FROM generate_series(1, 50) i`, deviceID, start)
	requirePages := func(path string, wantReads int32) {
		t.Helper()
		cached, c := f.cached(t, time.Hour)
		pages := cached.rawPages(t, path)
		require.Len(t, pages, 2, path)
		require.Equal(t, 50, len(pages[0].Data)+len(pages[1].Data), path)
		require.LessOrEqual(t, pages[0].size, 8<<20, path)
		require.Greater(t, pages[0].size+len(",")+len(pages[1].Data[0]), 8<<20, path)
		require.Equal(t, wantReads, c.reads.Load(), path)
	}
	requirePages(assignmentsPath, 0)
	f.exec(t, `UPDATE devices SET metadata = jsonb_build_object('k', repeat(E'\u0001', 30000))`)
	requirePages("/devices", 0)
	requirePages("/devices/current", 1) // The body is six times as long as the tags, which are in a snapshot.
	f.exec(t, `UPDATE devices SET metadata = jsonb_build_object('k', repeat('x', 180000))`)
	requirePages("/devices", 0)
	requirePages("/devices/current", 1+2+1) // The team is too large for a snapshot, and its large page is read twice.

	// A page holds one item, however large it is.
	f.exec(t, `DELETE FROM devices WHERE hardware_id NOT IN ('dev:1', 'dev:5')`)
	f.exec(t, `UPDATE devices SET metadata = jsonb_build_object('k', repeat('x', 8500000)) WHERE hardware_id = 'dev:5'`)
	large := 0
	for _, page := range f.rawPages(t, "/devices") {
		if page.size > 8<<20 {
			require.Len(t, page.Data, 1)
			large++
		}
	}
	require.Equal(t, 1, large)
}

// rawPage is a page of large items.
type rawPage struct {
	list[json.RawMessage]

	size int
}

// rawPages follows the cursors to the last page. It does not compare the bodies with the OpenAPI document, because only
// SQL can insert texts of such a length.
func (f *fixture) rawPages(t *testing.T, path string) (pages []rawPage) {
	t.Helper()
	for query := ""; ; {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+"/v1"+path+"?"+query, nil)
		require.NoError(t, err)
		withKey(f.key)(request)
		got, err := f.server.Client().Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, http.StatusOK, got.StatusCode)
		page := rawPage{size: len(body)}
		require.NoError(t, json.Unmarshal(body, &page))
		pages = append(pages, page)
		if page.NextCursor == nil {
			return pages
		}
		query = "cursor=" + *page.NextCursor
	}
}

// firstCursors returns a cursor of every list.
func (f *fixture) firstCursors(t *testing.T) map[string]string {
	t.Helper()
	cursors := map[string]string{}
	for path, all := range lists {
		cursors[path] = f.firstCursor(t, path+"?limit=1&"+all)
	}
	return cursors
}

func TestCursorSecurity(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fillLists(t, 3)
	t.Run("opaque", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 11 a", "spec 8, paging, opaque")
		for path, query := range lists {
			first, second := f.firstCursor(t, path+"?limit=1&"+query), f.firstCursor(t, path+"?limit=1&"+query)
			require.NotEqual(t, first, second, "cursors of equal pages differ")
			plain, err := base64.RawURLEncoding.DecodeString(first)
			require.NoError(t, err)
			for _, known := range []string{keyID(f.key), string(deviceID[:]), deviceID.String(), "2026"} {
				require.NotContains(t, string(plain), known)
			}
		}
	})
	t.Run("authenticated", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 11 b", "decision 12 c", "spec 7, cursor_invalid")
		for path, cursor := range f.firstCursors(t) {
			tampered := []string{ // Package cursor tests every bit.
				cursor[1:], cursor[:len(cursor)-1], cursor + "A", cursor + "=", cursor[:9] + "%0D%0A" + cursor[9:], "%20" + cursor,
				strings.ToUpper(cursor), "AA", "null", strings.Repeat("A", len(cursor)), "%00", "%ff",
			}
			for _, text := range tampered {
				f.get(t, path+"?cursor="+text).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
			}
			f.get(t, path+"?cursor="+cursor).requireOK(t)
		}
	})
}

// A cursor is valid for 24 hours from its own issue, also after a restart and on another replica.
func TestCursorLifetime(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11 e", "decision 11 f", "decision 12 d", "spec 8, paging, saved")
	f := setup(t)
	f.fillLists(t, 4)
	for path, all := range lists {
		cursor := f.firstCursor(t, path+"?limit=1&"+all)
		f.clock.advance(-time.Second)
		f.get(t, path+"?cursor="+cursor).requireOK(t) // The clock of the replica that issued it is ahead.
		f.clock.advance(time.Second)
		for range 2 {
			f.clock.advance(day)
			cursor = f.firstCursor(t, path+"?cursor="+cursor)
		}
		f.clock.advance(day + time.Microsecond)
		f.get(t, path+"?cursor="+cursor).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
	}
	cursors := f.firstCursors(t)
	f.server.Close()
	f.store.Close()
	f.store = openStore(t, f.url)
	f.replica = f.serve(t, f.store, nil)
	for path, cursor := range cursors {
		require.Len(t, f.items(t, path+"?cursor="+cursor), 1, path)
	}
}

// The checks of a cursor, in the order of decision 12: each row fails one or two of them, and the first counts.
func TestCursorChecks(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11 c", "spec 4, readings, rule 6", "spec 7, cursor_team_mismatch",
		"spec 7, cursor_device_mismatch", "spec 8, paging, key", "spec 8, paging, device")
	f := setup(t)
	f.fillLists(t, 3)
	f.addTeam(t, testID(0x7e, 2))
	foreign := f.addKey(t, roomsensor.Key{TeamID: testID(0x7e, 2), Scope: roomsensor.ScopeRead})
	second := decode[list[item]](t, f.get(t, "/devices")).Data
	existing := "/devices/" + fmt.Sprint(second[0]["device_id"]) + "/readings"
	if existing == readingsPath {
		existing = "/devices/" + fmt.Sprint(second[1]["device_id"]) + "/readings"
	}
	other := "/devices/" + unknownID
	cursors := f.firstCursors(t)
	for path := range lists { // Every list with the cursor of every other.
		for of, cursor := range cursors {
			if got := f.get(t, path+"?cursor="+cursor); path == of {
				got.requireOK(t)
			} else {
				got.requireError(t, roomsensor.CodeCursorInvalid, "cursor")
			}
		}
	}
	type failure struct {
		covers string
		code   roomsensor.Code
		param  string
	}
	invalid := failure{"decision 12 c", roomsensor.CodeCursorInvalid, "cursor"}
	expired := failure{"decision 12 d", roomsensor.CodeCursorInvalid, "cursor"}
	ofTeam := failure{"decision 12 e", roomsensor.CodeCursorTeamMismatch, "cursor"}
	ofDevice := failure{"decision 12 f", roomsensor.CodeCursorDeviceMismatch, "cursor"}
	differs := failure{"decision 12 g", roomsensor.CodeValidationFailed, "last"}
	tooOld := day + time.Microsecond
	for _, tc := range []struct {
		path, of, also string // of: the list of the cursor; empty for a corrupted one
		key            string
		age            time.Duration
		want           failure
	}{
		{readingsPath, "", "", f.readKey, 0, invalid},
		{readingsPath, "/devices", "", f.readKey, 0, invalid},
		{readingsPath, readingsPath, "", f.readKey, tooOld, expired},
		{other + "/assignments", assignmentsPath, "", foreign, tooOld, expired},
		{readingsPath, readingsPath, "", f.readKey, 0, ofTeam},
		{other + "/assignments", assignmentsPath, "", foreign, 0, ofTeam},
		{"/devices", "/devices", "&metadata.a=b", f.readKey, 0, ofTeam},
		{existing, readingsPath, "", f.key, 0, ofDevice},
		{other + "/readings", readingsPath, "&last=1h", f.key, 0, ofDevice},
		{other + "/assignments", assignmentsPath, "&limit=9", f.key, 0, ofDevice},
		{readingsPath, readingsPath, "&last=1h", f.key, day, differs},
	} {
		conformance.Covers(t, tc.want.covers)
		f.clock.advance(tc.age)
		cursor := cursors[tc.of]
		if tc.of == "" {
			cursor = cursors[readingsPath][:20]
		}
		for _, query := range []string{"cursor=" + cursor + tc.also, strings.TrimPrefix(tc.also+"&cursor="+cursor, "&")} {
			f.get(t, tc.path+"?"+query, withKey(tc.key)).requireError(t, tc.want.code, tc.want.param)
		}
		f.clock.advance(-tc.age)
	}
}

// A parameter beside a cursor may be omitted, and must mean what it meant on the first page (decision 12).
func TestParametersBesideACursor(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 12 a", "decision 12 b", "decision 12 g", "decision 12 h", "decision 12 i", "decision 12 j")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-10*time.Hour), 60)
	assignment, another := testID(0xa5, 1).String(), testID(0xa5, 2).String()
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-9*time.Hour), nil)
	from, to := before(8*time.Hour), before(0)
	sameFrom := start.Add(-8*time.Hour).Format("2006-01-02T15:04:05") + ".000000000Z"
	for first, seconds := range map[string]map[string]string{ // To each second query the parameter that differs, if any.
		"": {
			"": "", "last=24h": "", "last=1d": "", "last=1440m": "", "last=23h": "last", "from=" + from: "from", "to=" + to: "to",
			"last=24h&from=x&to=y": "", "last=1h&from=x": "last", "assignment_id=" + assignment: "assignment_id",
			"assignment_id=" + assignment + "&last=1h": "assignment_id", "last=1h&assignment_id=" + assignment: "last",
		},
		"last=24h":        {"last=24h": "", "from=" + from: "from"},
		"last=24h&from=x": {"last=24h&from=y": ""},
		"from=" + from: {
			"from=" + from: "", "from=" + sameFrom: "", "from=" + to: "from", "to=" + to: "to", "last=24h": "last", "last=24h&from=" + from: "last",
		},
		"from=" + from + "&to=" + to: {
			"to=" + to: "", "to=" + to + "&from=" + from: "", "from=" + to: "from", "from=" + to + "&to=" + from: "from",
		},
		"assignment_id=" + assignment: {
			"assignment_id=" + assignment: "", "assignment_id=A5" + assignment[2:]: "", "assignment_id=" + another: "assignment_id",
			"last=24h": "last",
		},
		"assignment_id=" + assignment + "&last=24h": {"last=1d": ""},
	} {
		cursor := f.firstCursor(t, readingsPath+"?limit=5&"+first)
		for second, differs := range seconds {
			got := f.get(t, readingsPath+"?cursor="+cursor+"&"+second)
			if differs != "" {
				got.requireInvalid(t, differs)
				continue
			}
			require.Len(t, decode[list[item]](t, got).Data, 5, "%s, then %s: the limit of the page before", first, second)
			require.Len(t, f.items(t, readingsPath+"?limit=7&cursor="+cursor+"&"+second), 7)
		}
	}

	f.addDevices(t, 7)
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"1","wing":"a"}' WHERE id <> $1`, deviceID)
	for _, path := range []string{"/devices", "/devices/current"} {
		cursor := f.firstCursor(t, path+"?metadata.floor=1&metadata.wing=a&limit=2")
		for query, differs := range map[string]string{
			"": "", "&metadata.floor=1": "", "&metadata.wing=a&metadata.floor=1": "", "&metadata.floor=2": "metadata.floor",
			"&metadata.wing=A": "metadata.wing", "&metadata.room=1": "metadata.room", "&metadata.floor=": "metadata.floor",
			"&metadata.floor=2&metadata.wing=b": "metadata.floor", "&metadata.wing=b&metadata.floor=2": "metadata.wing",
			"&metadata.wing=a&metadata.floor%20=": "metadata.floor ",
		} {
			got := f.get(t, path+"?cursor="+cursor+query)
			if differs != "" {
				got.requireInvalid(t, differs)
				continue
			}
			require.Len(t, decode[list[item]](t, got).Data, 2, "the filters of the first page apply")
		}
	}
}

// The window of the first page applies to every page, even if now, or the assignment, changes (decision 11 d).
func TestPagesKeepTheirWindow(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11 d", "decision 12 a", "decision 12 b")
	f := setup(t)
	assignment := testID(0xa5, 1)
	f.addAssignment(t, deviceID, assignment, start.Add(-day), nil)
	f.addReadings(t, deviceID, start.Add(-day), 288)
	for _, query := range []string{
		"", "last=24h", "last=1d&from=x", "from=" + before(day), "to=" + before(0),
		"assignment_id=" + assignment.String(),
	} {
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

// twoReplicas is a fixture with two replicas, on which each draw of a property test has its own team.
type twoReplicas struct {
	*fixture
	replicas [2]*replica
	ids      uint32 // drawn so far
}

func setupReplicas(t *testing.T) *twoReplicas {
	t.Helper()
	r := &twoReplicas{fixture: setup(t)}
	r.replicas = [2]*replica{r.replica, r.serve(t, openStore(t, r.url), nil)}
	return r
}

// newID returns a new id at a random position among the others.
func (r *twoReplicas) newID(rt *rapid.T) uuid.UUID {
	r.ids++
	id := testID(rapid.Byte().Draw(rt, "id"), 0)
	binary.BigEndian.PutUint32(id[12:], r.ids)
	return id
}

// teamModel is a team whose data change while a client pages through a list.
type teamModel struct {
	*twoReplicas
	t           *testing.T
	rt          *rapid.T
	team        uuid.UUID
	key         string
	device      uuid.UUID // the one with readings and assignments
	pages       int
	assignments map[int]bool // by their position in time
}

// emptyTeam adds a team without devices.
func (r *twoReplicas) emptyTeam(t *testing.T, rt *rapid.T) *teamModel {
	t.Helper()
	m := &teamModel{twoReplicas: r, t: t, rt: rt, team: r.newID(rt), assignments: map[int]bool{}}
	r.addTeam(t, m.team)
	m.key = r.addKey(t, roomsensor.Key{TeamID: m.team, Scope: roomsensor.ScopeReadWrite})
	return m
}

// randomTeam adds a team with devices, assignments and readings.
func (r *twoReplicas) randomTeam(t *testing.T, rt *rapid.T) *teamModel {
	t.Helper()
	m := r.emptyTeam(t, rt)
	m.device = m.newDevice()
	for range rapid.IntRange(0, 7).Draw(rt, "devices") {
		m.newDevice()
	}
	for range rapid.IntRange(0, 6).Draw(rt, "assignments") {
		m.newAssignment()
	}
	m.newReadings(rapid.IntRange(0, 40).Draw(rt, "readings"))
	return m
}

func (m *teamModel) newDevice() uuid.UUID {
	m.t.Helper()
	id := m.newID(m.rt)
	m.exec(m.t, `INSERT INTO devices (id, team_id, hardware_id, metadata) VALUES ($1, $2, $3, '{"floor":"1"}')`,
		id, m.team, fmt.Sprintf("dev:%d", 1_000_000+m.ids))
	return id
}

// newAssignment adds an assignment of 6 hours at a random position in time, unless it is taken.
func (m *teamModel) newAssignment() {
	m.t.Helper()
	n := rapid.IntRange(0, 20).Draw(m.rt, "assignment")
	if m.assignments[n] {
		return
	}
	m.assignments[n] = true
	end := start.Add(-time.Duration(n) * 6 * time.Hour)
	m.addAssignment(m.t, m.device, m.newID(m.rt), end.Add(-6*time.Hour), &end)
}

// newReadings stores n readings of the last 30 hours.
func (m *teamModel) newReadings(n int) {
	m.t.Helper()
	newest := m.clock.now().Truncate(roomsensor.BucketLength)
	buckets := make([]time.Time, n)
	for i := range buckets {
		buckets[i] = newest.Add(-time.Duration(rapid.IntRange(0, 360).Draw(m.rt, "bucket")) * roomsensor.BucketLength)
	}
	m.exec(m.t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT $1, unnest($2::timestamptz[]), 1
		ON CONFLICT DO NOTHING`, m.device, buckets)
}

// change applies a random change: data arrive, time passes, a replica restarts.
func (m *teamModel) change() {
	m.t.Helper()
	i := rapid.IntRange(0, 1).Draw(m.rt, "replica")
	switch rapid.IntRange(0, 6).Draw(m.rt, "change") {
	case 0, 1:
		m.newReadings(rapid.IntRange(1, 20).Draw(m.rt, "readings"))
	case 2:
		m.newDevice()
	case 3:
		m.newAssignment()
	case 4:
		m.replicas[i].do(m.rt, http.MethodPatch, "/v1/devices/"+m.device.String(), `{"display_name":"x","metadata":{"a":"b"}}`,
			withKey(m.key), asJSON).requireOK(m.rt)
	case 5:
		m.clock.advance(time.Duration(rapid.IntRange(1, 100).Draw(m.rt, "minutes")) * time.Minute)
	case 6:
		m.replicas[i] = m.serve(m.t, m.store, nil)
	}
}

// listed are the fields that order the items of any list.
type listed struct {
	DeviceID     string `json:"device_id"`
	AssignmentID string `json:"assignment_id"`
	StartedAt    string `json:"started_at"`
	BucketAt     string `json:"bucket_at"`
}

// compare compares two items by the order of decision 10.
func (a listed) compare(b listed) int {
	return cmp.Or(strings.Compare(b.BucketAt, a.BucketAt), strings.Compare(b.StartedAt, a.StartedAt),
		strings.Compare(a.DeviceID+a.AssignmentID, b.DeviceID+b.AssignmentID))
}

// page reads a page of a list, from both replicas in turn.
func (m *teamModel) page(path, query string) (items []listed, next string) {
	m.t.Helper()
	m.pages++
	page := decode[list[listed]](m.rt, m.replicas[m.pages%2].get(m.rt, path+"?"+query, m.key))
	if page.NextCursor != nil {
		next = "cursor=" + url.QueryEscape(*page.NextCursor)
	}
	return page.Data, next
}

// allPages pages through a list while the data change.
func (m *teamModel) allPages(path, first string) (items []listed) {
	m.t.Helper()
	for query := first; query != ""; {
		var page []listed
		page, query = m.page(path, query)
		items = append(items, page...)
		for range rapid.IntRange(0, 2).Draw(m.rt, "changes") {
			m.change()
		}
		if query != "" && rapid.IntRange(0, 3).Draw(m.rt, "other limit") == 0 {
			query += "&limit=" + strconv.Itoa(rapid.IntRange(1, 9).Draw(m.rt, "limit"))
		}
	}
	return items
}

// While the data change, every item that existed at the first page is on one page, in order, and the window stays that
// of the first page (decisions 10, 11 and 13).
func TestStablePages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 10 a", "decision 10 b", "decision 10 c", "decision 11 d", "decision 11 f", "decision 13")
	for path, filter := range map[string]string{
		"/devices": "metadata.floor=1", "/devices/current": "", "/devices/{device_id}/assignments": "",
		"/devices/{device_id}/readings": "last=24h",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			replicas := setupReplicas(t)
			rapid.Check(t, func(rt *rapid.T) {
				m := replicas.randomTeam(t, rt)
				m.requireStablePages(strings.Replace(path, "{device_id}", m.device.String(), 1), filter)
			})
		})
	}
}

func (m *teamModel) requireStablePages(path, filter string) {
	m.t.Helper()
	existing, _ := m.page(path, filter)
	from, to := m.clock.now().Add(-24*time.Hour), m.clock.now()

	items := m.allPages(path, filter+"&limit="+strconv.Itoa(rapid.IntRange(1, 6).Draw(m.rt, "first limit")))

	require.True(m.rt, slices.IsSortedFunc(items, listed.compare), "%v", items)
	for i := 1; i < len(items); i++ {
		require.NotEqual(m.rt, items[i-1], items[i], "repeated")
	}
	require.Subset(m.rt, items, existing, "skipped")
	for _, item := range items {
		if item.BucketAt == "" {
			break
		}
		at, ok := roomsensor.ParseTime(item.BucketAt)
		require.True(m.rt, ok && !at.Before(from) && at.Before(to), "%s is not from %s to %s", at, from, to)
	}
}
