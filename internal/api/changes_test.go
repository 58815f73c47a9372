package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
)

const changesPath = "/readings/changes"

// changePage is a page of the change feed.
type changePage struct {
	Data       []change `json:"data"`
	NextCursor string   `json:"next_cursor"`
	CaughtUp   bool     `json:"caught_up"`

	Deleted *[]deletion `json:"deleted"`
}

type deletion struct {
	DeviceID  uuid.UUID `json:"device_id"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	DeletedAt time.Time `json:"deleted_at"`
}

type change struct {
	DeviceID uuid.UUID `json:"device_id"`
	BucketAt time.Time `json:"bucket_at"`
	CO2      *float64  `json:"co2_ppm"`
}

// setupFeed is setup with the clock of the database, which gives readings their times in the feed.
func setupFeed(t *testing.T) *fixture {
	t.Helper()
	f := setup(t)
	f.clock.advance(time.Since(start).Truncate(time.Second))
	return f
}

func (f *fixture) changes(t testingT, query string, options ...option) changePage {
	t.Helper()
	return decode[changePage](t, f.get(t, changesPath+"?"+query, options...))
}

// follow reads pages from a cursor until the client has caught up with some number of readings.
func (f *fixture) follow(t testing.TB, query string, want int) (all []change, next string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for {
			page := f.changes(t, query)
			all, next = append(all, page.Data...), page.NextCursor
			query = "cursor=" + url.QueryEscape(next)
			if page.CaughtUp {
				return len(all) >= want
			}
		}
	}, patience, 50*time.Millisecond)
	require.Len(t, all, want)
	return all, next
}

// store stores a reading as a worker does.
func (f *fixture) storeReading(t testing.TB, device uuid.UUID, at time.Time, co2 float32) {
	t.Helper()
	row := roomsensor.DeviceMeasurement{DeviceID: device}
	row.MeasuredAt = at
	row.Values.Set(roomsensor.CO2, co2)
	_, err := f.store.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{row}})
	require.NoError(t, err)
}

func TestChangesParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.1", "A0.1")
	f := setupFeed(t)
	now := f.clock.now()
	ago := func(d time.Duration) string { return roomsensor.FormatTime(now.Add(-d)) }
	for query, want := range map[string]struct {
		code  roomsensor.Code
		param string
	}{
		"since=2026-11-20":                 {roomsensor.CodeTimeRangeInvalid, "since"},
		"since=":                           {roomsensor.CodeTimeRangeInvalid, "since"},
		"since=" + ago(-time.Second):       {roomsensor.CodeTimeRangeInvalid, "since"},
		"since=" + ago(30*day+time.Second): {roomsensor.CodeTimeRangeTooWide, "since"},
		"wait=31":                          {invalid, "wait"},
		"wait=-1":                          {invalid, "wait"},
		"wait=1.5":                         {invalid, "wait"},
		"wait=":                            {invalid, "wait"},
		"wait=256":                         {invalid, "wait"},
		"include=":                         {invalid, "include"},
		"include=deletions,deletions":      {invalid, "include"},
		"include=assignment":               {invalid, "include"},
		"limit=1001":                       {invalid, "limit"},
		"devices=dev:1":                    {invalid, "devices"},
		"devices=" + unknownID:             {roomsensor.CodeDeviceNotFound, "devices"},
		"key=" + f.key:                     {invalid, "key"},
		"from=" + ago(time.Hour):           {invalid, "from"},
		"cursor=x":                         {roomsensor.CodeCursorInvalid, "cursor"},
	} {
		f.get(t, changesPath+"?"+query).requireError(t, want.code, want.param)
	}
	for _, query := range []string{"", "since=" + ago(0), "since=" + ago(30*day), "wait=0", "limit=1", "metadata.x=y"} {
		require.Empty(t, f.changes(t, query).Data, query)
	}
	first := f.changes(t, "since="+ago(time.Hour)+"&devices="+deviceID.String()+"&metadata.a=b")
	next := "cursor=" + url.QueryEscape(first.NextCursor)
	for query, param := range map[string]string{
		"since=" + ago(time.Hour): "", "devices=" + strings.ToUpper(deviceID.String()): "", "metadata.a=b": "", "limit=5": "", "wait=0": "",
		"since=" + ago(time.Minute): "since", "devices=" + unknownID: "devices", "metadata.a=c": "metadata.a", "metadata.b=b": "metadata.b",
		"include=deletions":                           "include",
		"since=" + ago(time.Minute) + "&metadata.a=c": "since", "metadata.a=c&since=" + ago(time.Minute): "metadata.a",
	} {
		got := f.get(t, changesPath+"?"+next+"&"+query)
		if param == "" {
			got.requireOK(t)
		} else {
			got.requireInvalid(t, param)
		}
	}
	f.get(t, changesPath+"?"+next, withKey(f.readKey)).requireError(t, roomsensor.CodeCursorTeamMismatch, "cursor")

	f.clock.advance(30 * day)
	f.changes(t, next)
	f.clock.advance(time.Second)
	conformance.Covers(t, "A5.6")
	expired := f.get(t, changesPath+"?"+next)
	expired.requireError(t, roomsensor.CodeCursorInvalid, "cursor")
	require.Contains(t, string(expired.body), "resynchronize")
	require.Contains(t, string(expired.body), "since")
}

// A client that follows the cursor has every reading in its last state, through any replica.
func TestChanges(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.2", "A5.3")
	f := setupFeed(t)
	other := f.serve(t, openStore(t, f.url), nil)
	begin := f.changes(t, "")
	require.True(t, begin.CaughtUp)
	for i := range 5 {
		f.storeReading(t, deviceID, start.Add(-time.Duration(i)*35*time.Hour), float32(i))
	}
	all, next := f.follow(t, "limit=2&cursor="+url.QueryEscape(begin.NextCursor), 5)
	seen := map[time.Time]float64{}
	for _, c := range all {
		require.Equal(t, deviceID, c.DeviceID)
		seen[c.BucketAt] = *c.CO2
	}
	require.Len(t, seen, 5)
	f.goldenChange(t, next)

	f.storeReading(t, deviceID, start, 9)
	again, next := f.follow(t, "cursor="+url.QueryEscape(next), 1)
	require.InDelta(t, 9, *again[0].CO2, 0)
	page := decode[changePage](t, other.get(t, changesPath+"?cursor="+url.QueryEscape(next), f.key))
	require.Empty(t, page.Data, "of another replica")

	conformance.Covers(t, "A5.8")
	since := "since=" + roomsensor.FormatTime(f.clock.now().Add(-time.Minute))
	_, _ = f.follow(t, since, 5)
}

// goldenChange compares the bytes of a page with one reading.
func (f *fixture) goldenChange(t *testing.T, next string) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, lux) VALUES ($1, '2026-11-01T00:05:00Z', 612.5, -3, 0)`, deviceID)
	var body string
	require.Eventually(t, func() bool {
		got := f.get(t, changesPath+"?cursor="+url.QueryEscape(next))
		body = string(got.body)
		return strings.Contains(body, "612.5")
	}, patience, 50*time.Millisecond)
	require.Regexp(t, `^\{"data":\[\{"device_id":"`+deviceID.String()+`","bucket_at":"2026-11-01T00:05:00Z","co2_ppm":612\.5,`+
		`"temp_c":-3,"humidity_pct":null,"lux":0,"spl_db":null,"ingested_at":"[^"]+Z"\}\],`+
		`"next_cursor":"[A-Za-z0-9_-]+","caught_up":true\}$`, body)
	f.exec(t, `DELETE FROM readings WHERE bucket_at = '2026-11-01T00:05:00Z'`)
}

// Filters apply to each page: a device that begins to match appears with its changes from then on.
func TestChangesFilters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.10", "spec 5, rule 2")
	f := setupFeed(t)
	foreign := f.addOtherTeam(t)
	second := testID(0xde, 9)
	f.addDevice(t, teamID, second, "dev:99")
	begin := f.changes(t, "")
	tagged := f.changes(t, "metadata.site=north")
	named := f.changes(t, "devices="+second.String()+","+second.String())
	for _, device := range []uuid.UUID{deviceID, second, foreign.device} {
		f.storeReading(t, device, start, 1)
	}
	all, _ := f.follow(t, "cursor="+begin.NextCursor, 2)
	require.ElementsMatch(t, []uuid.UUID{deviceID, second}, []uuid.UUID{all[0].DeviceID, all[1].DeviceID})
	one, _ := f.follow(t, "cursor="+named.NextCursor, 1)
	require.Equal(t, second, one[0].DeviceID)
	_, next := f.follow(t, "cursor="+tagged.NextCursor, 0)

	f.exec(t, `UPDATE devices SET metadata = '{"site":"north"}' WHERE id = $1`, deviceID)
	f.storeReading(t, deviceID, start.Add(time.Hour), 2)
	f.storeReading(t, second, start.Add(time.Hour), 2)
	one, _ = f.follow(t, "cursor="+next, 1)
	require.Equal(t, deviceID, one[0].DeviceID)

	f.exec(t, `DELETE FROM devices WHERE id = $1`, second)
	f.changes(t, "cursor="+named.NextCursor)
}

// deleteHour deletes the readings of a device in an hour, as an operator does.
func (f *fixture) deleteHour(t testing.TB, device uuid.UUID, hour time.Time) {
	t.Helper()
	deleted, err := f.store.DeleteReadings(t.Context(), device,
		roomsensor.Window{From: hour, To: hour.Add(time.Hour)}, "The sensor was wet.")
	require.NoError(t, err)
	require.Positive(t, deleted.Readings)
}

// TestChangesDeletions checks that a client that asks for deletions gets them, in the page of the readings that were stored
// again or before, and no other client.
func TestChangesDeletions(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.12", "A5.13")
	f := setupFeed(t)
	since := "since=" + url.QueryEscape(roomsensor.FormatTime(f.clock.now()))
	team, theirs := testID(0x7e, 2), testID(0xde, 9)
	f.addTeam(t, team)
	f.addDevice(t, team, theirs, "dev:99")
	plain, asked := f.changes(t, since), f.changes(t, since+"&include=deletions")
	require.Nil(t, plain.Deleted)
	require.Empty(t, *asked.Deleted)
	f.storeReading(t, deviceID, start, 400)
	f.storeReading(t, deviceID, start.Add(time.Hour), 500)
	f.deleteHour(t, deviceID, start)
	f.storeReading(t, deviceID, start.Add(5*time.Minute), 600)
	f.storeReading(t, theirs, start, 700)
	f.deleteHour(t, theirs, start)

	var deleted []deletion
	stored := map[time.Time]float64{}
	next := asked.NextCursor
	require.Eventually(t, func() bool {
		page := f.changes(t, "limit=1&cursor="+url.QueryEscape(next)) // The cursor has include.
		next = page.NextCursor
		deleted = append(deleted, *page.Deleted...)
		for _, d := range *page.Deleted {
			maps.DeleteFunc(stored, func(at time.Time, _ float64) bool { return !at.Before(d.From) && at.Before(d.To) })
		}
		for _, c := range page.Data {
			stored[c.BucketAt] = *c.CO2
		}
		return page.CaughtUp && len(stored) == 2
	}, patience, 50*time.Millisecond)
	require.Equal(t, map[time.Time]float64{start.Add(time.Hour): 500, start.Add(5 * time.Minute): 600}, stored)
	require.NotEmpty(t, deleted)
	for _, d := range deleted {
		require.Equal(t, deletion{deviceID, start, start.Add(time.Hour), d.DeletedAt}, d)
		require.WithinDuration(t, time.Now(), d.DeletedAt, patience)
	}
	cursor := changesPath + "?cursor=" + url.QueryEscape(next)
	f.get(t, cursor+"&include=deletions").requireOK(t)
	readings, _ := f.follow(t, "cursor="+url.QueryEscape(plain.NextCursor), 2)
	require.Len(t, readings, 2)

	tag := f.get(t, cursor).header.Get("ETag")
	f.deleteHour(t, deviceID, start)
	require.Eventually(t, func() bool {
		return f.get(t, cursor, header("If-None-Match", tag)).status == http.StatusOK
	}, patience, 50*time.Millisecond, "a page of deletions only has another tag")
}

// TestChangesDeletionsWait checks that a deletion ends the wait of a request that asked for them, and no other one's.
func TestChangesDeletionsWait(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.13")
	e := setupWaiting(t)
	e.storeReading(t, deviceID, start, 400)
	_, plain := e.follow(t, "cursor="+url.QueryEscape(e.cursor), 1)
	asked := e.changes(t, "include=deletions").NextCursor
	waiting := e.send(t, 1, "cursor="+asked)
	others := e.sendOne(t, "cursor="+plain)
	e.deleteHour(t, deviceID, start)
	page := decode[changePage](t, <-waiting)
	require.Empty(t, page.Data)
	require.Len(t, *page.Deleted, 1)
	e.storeReading(t, deviceID, start, 500)
	page = decode[changePage](t, <-others)
	require.Len(t, page.Data, 1, "the deletion did not end its wait")
	require.Nil(t, page.Deleted)
}

// The tag of a page is that of its items, so that a client that polls gets 304 (decision 49).
func TestChangesETag(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42 c", "decision 49 a", "decision 49 c")
	f := setupFeed(t)
	path := changesPath + "?cursor=" + f.changes(t, "").NextCursor
	tag := f.get(t, path).header.Get("ETag")
	require.Equal(t, http.StatusNotModified, f.get(t, path, header("If-None-Match", tag)).status)
	f.storeReading(t, deviceID, start, 1)
	require.Eventually(t, func() bool {
		return f.get(t, path, header("If-None-Match", tag)).status == http.StatusOK
	}, patience, 50*time.Millisecond)
}

// waitingEnv is a replica on which requests wait.
type waitingEnv struct {
	*fixture
	store    *store.Store
	registry *prometheus.Registry
	stop     func()
	cursor   string
}

func setupWaiting(t *testing.T) *waitingEnv {
	t.Helper()
	f := setupFeed(t)
	e := &waitingEnv{fixture: f, store: openStore(t, f.url), registry: prometheus.NewRegistry()}
	f.replica = f.serve(t, e.store, func(cfg *api.Config) { cfg.Metrics = e.registry }, func(s *http.Server) {
		e.stop = func() { _ = s.Shutdown(t.Context()) }
	})
	e.cursor = f.changes(t, "").NextCursor
	return e
}

// send sends requests that wait, and returns when they do.
func (e *waitingEnv) send(t *testing.T, n int, query string, options ...option) <-chan response {
	t.Helper()
	responses := make(chan response, n)
	for range n {
		go func() { responses <- e.hold(t, query, options...) }()
	}
	e.awaitWaiting(t, n)
	return responses
}

func (e *waitingEnv) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return e.waiting(t) == n }, patience, 5*time.Millisecond)
}

func (e *waitingEnv) waiting(t *testing.T) int {
	t.Helper()
	families, err := e.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "roomsensor_api_changes_waiting" {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return -1
}

func TestChangesWait(t *testing.T) {
	t.Parallel()
	const half = 15 * time.Second // of the wait that a request asks for
	t.Run("until a change", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A5.5", "A5.4")
		e := setupWaiting(t)
		other := testID(0xde, 9)
		e.addDevice(t, teamID, other, "dev:99")
		of := e.changes(t, "devices="+other.String()).NextCursor
		waiting, otherWaiting := e.send(t, 1, "cursor="+e.cursor), e.sendOne(t, "cursor="+of)
		require.Eventually(t, func() bool { // The watermark is read from time to time.
			return e.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'roomsensor api%' AND state <> 'idle'
				AND datname = current_database()`) == 0
		}, patience, time.Millisecond, "a waiting request holds no connection")
		e.storeReading(t, deviceID, start, 5)
		page := decode[changePage](t, <-waiting)
		require.Len(t, page.Data, 1)
		e.awaitWaiting(t, 1)
		e.storeReading(t, other, start, 5)
		require.Len(t, decode[changePage](t, <-otherWaiting).Data, 1)
		require.Equal(t, "595", e.get(t, "/team").header.Get("RateLimit-Remaining"), "each request counts once")
	})
	t.Run("until its time is over", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A5.5")
		e := setupWaiting(t)
		began := time.Now()
		page := e.changes(t, "wait=1&cursor="+e.cursor)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		require.Empty(t, page.Data)
		require.True(t, page.CaughtUp)
		began = time.Now()
		e.head(t, changesPath+"?wait=30&cursor="+e.cursor).requireOK(t)
		require.Less(t, time.Since(began), half, "HEAD never waits")
	})
	t.Run("as many as the limit of a key", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A5.11")
		e := setupWaiting(t)
		waiting := e.send(t, 8, "cursor="+e.cursor)
		began := time.Now()
		require.Empty(t, e.changes(t, "wait=30&cursor="+e.cursor).Data)
		require.Less(t, time.Since(began), half, "one more is not held")
		e.stop()
		for range 8 {
			require.Empty(t, decode[changePage](t, <-waiting).Data)
		}
	})
	t.Run("until its key is refused", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A5.11", "decision 24 k", "decision 24 l")
		e := setupWaiting(t)
		expiry := e.clock.now().Add(1500 * time.Millisecond)
		for key, code := range map[string]roomsensor.Code{
			e.newKey(t, roomsensor.ScopeRead): roomsensor.CodeAPIKeyRevoked,
			e.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &expiry}): roomsensor.CodeAPIKeyExpired,
		} {
			next := e.changes(t, "", withKey(key)).NextCursor
			waiting := e.send(t, 1, "cursor="+next, withKey(key))
			if code == roomsensor.CodeAPIKeyRevoked {
				e.revoke(t, key)
			} else {
				e.clock.advance(time.Hour)
			}
			(<-waiting).requireError(t, code, "")
		}
	})
}

// hold sends a request that waits.
func (e *waitingEnv) hold(t *testing.T, query string, options ...option) response {
	t.Helper()
	options = append([]option{withKey(e.key)}, options...)
	return e.try(t.Context(), http.MethodGet, "/v1"+changesPath+"?wait=30&"+query, "", options...)
}

// sendOne sends a request that waits beside others.
func (e *waitingEnv) sendOne(t *testing.T, query string) <-chan response {
	t.Helper()
	before := e.waiting(t)
	held := make(chan response, 1)
	go func() { held <- e.hold(t, query) }()
	e.awaitWaiting(t, before+1)
	return held
}

// The cursor of a client that reads a page in a while does not live for ever: its round is too old at some time.
func TestChangesOldRound(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.6")
	f := setupFeed(t)
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	sealer, err := cursor.NewSealer(secret)
	require.NoError(t, err)
	now := f.clock.now()
	state := &cursor.State{
		Endpoint: cursor.Changes, KeyID: keyID(f.key), IssuedAt: now, Limit: 1,
		Window: roomsensor.Window{From: now.Add(-roomsensor.FeedKeep), To: now.Add(-time.Hour)},
	}
	f.get(t, changesPath+"?cursor="+sealer.Seal(state)).requireOK(t)
	state.Window.From = state.Window.From.Add(-time.Second)
	f.get(t, changesPath+"?cursor="+sealer.Seal(state)).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
}

// TestChangesAhead checks that a restored service refuses a cursor that it issued before it lost its last data, also while
// the clock of the new server is behind.
func TestChangesAhead(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	secret, err := f.store.CursorSecret(t.Context())
	require.NoError(t, err)
	sealer, err := cursor.NewSealer(secret)
	require.NoError(t, err)
	issued := time.Now().UTC()
	ahead := issued.Add(time.Hour)
	for name, window := range map[string]roomsensor.Window{
		"between rounds": {From: ahead, To: ahead}, "within a round": {From: issued.Add(-time.Hour), To: ahead},
	} {
		state := &cursor.State{
			Endpoint: cursor.Changes, KeyID: keyID(f.key), IssuedAt: f.clock.now(), Limit: 1, Window: window,
		}
		for _, wait := range []string{"0", "1"} {
			got := f.get(t, changesPath+"?wait="+wait+"&cursor="+sealer.Seal(state))
			got.requireError(t, roomsensor.CodeCursorInvalid, "cursor")
			require.Contains(t, string(got.body), "restored", name)
		}
	}
}
