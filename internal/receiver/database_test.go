package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// databaseServer is a testServer with a database, which it uses with the rights of a receiver.
type databaseServer struct {
	*testServer
	owner    *store.Store
	otherKey string // of another team
	other    uuid.UUID
	sequence uint64
}

func newDatabaseServer(t *testing.T) *databaseServer {
	t.Helper()
	g := &databaseServer{testServer: newTestServer(t)}
	db := dbtest.New(t)
	var err error
	g.owner, err = store.Open(t.Context(), db.URL, store.Operator)
	require.NoError(t, err)
	t.Cleanup(g.owner.Close)
	asReceiver, err := store.Open(t.Context(), db.As(t, schema.RoleReceiver), store.Ingest)
	require.NoError(t, err)
	t.Cleanup(asReceiver.Close)
	g.receiver.Database = asReceiver
	for _, team := range []*uuid.UUID{&g.team, &g.other} {
		created, err := g.owner.CreateTeam(t.Context(), "Team")
		require.NoError(t, err)
		*team = created.ID
	}
	g.keyID, g.key = g.keys.add(g.team, false)
	_, g.otherKey = g.keys.add(g.other, false)
	return g
}

// install adds a device with a unit that is installed since a time.
func (g *databaseServer) install(t *testing.T, team uuid.UUID, unit string, since *time.Time) {
	t.Helper()
	_, err := g.owner.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: team, HardwareID: unit, InstalledAt: since}, time.Now())
	require.NoError(t, err)
}

// reject stores a reject of an upload that arrived some minutes ago.
func (g *databaseServer) reject(t *testing.T, team *uuid.UUID, minutes int, unit string, reason roomsensor.Reason) {
	t.Helper()
	g.sequence++
	_, err := g.owner.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{{
		Arrival:    roomsensor.Arrival{At: rejectedAt.Add(-time.Duration(minutes) * time.Minute), Sequence: g.sequence, Team: team},
		HardwareID: &unit, Reason: reason, Detail: fmt.Sprintf("%d minutes.", minutes), Payload: []byte("secret payload"),
	}}})
	require.NoError(t, err)
}

var rejectedAt = time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)

// ask sends a request with a credential.
func (g *databaseServer) ask(t *testing.T, key, method, path, body string, headers ...string) answer {
	t.Helper()
	return g.do(t, method, path, strings.NewReader(body), append(headers, "Authorization", "Bearer "+key)...)
}

// rejectPage is a page of GET /rejects.
type rejectPage struct {
	Data []struct {
		ID     uuid.UUID         `json:"id"`
		Reason roomsensor.Reason `json:"reason"`
		Detail string            `json:"detail"`
	} `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// rejects returns the details of a page, and the cursor of the next one.
func (g *databaseServer) rejects(t *testing.T, key, query string) (details []string, next *string) {
	t.Helper()
	a := g.ask(t, key, http.MethodGet, "/rejects"+query, "")
	require.Equal(t, http.StatusOK, a.status, a.body)
	var page rejectPage
	require.NoError(t, json.Unmarshal([]byte(a.body), &page))
	details = []string{}
	for i := range page.Data {
		details = append(details, strings.TrimSuffix(page.Data[i].Detail, " minutes."))
	}
	return details, page.NextCursor
}

func TestRejects(t *testing.T) {
	t.Parallel()
	g := newDatabaseServer(t)
	empty, next := g.rejects(t, g.key, "")
	require.Empty(t, empty)
	require.Nil(t, next)
	for minutes := range 6 {
		reason := roomsensor.ReasonUnknownUnit
		if minutes%2 == 0 {
			reason = roomsensor.ReasonNoMetric
		}
		g.reject(t, &g.team, minutes, fmt.Sprint("dev:", minutes%3), reason)
		g.reject(t, &g.other, 100+minutes, "dev:0", roomsensor.ReasonNoMetric)
		g.reject(t, nil, 200+minutes, "dev:0", roomsensor.ReasonNoMetric)
	}

	t.Run("newest first, with all fields and no payload", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.2")
		details, next := g.rejects(t, g.key, "")
		require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, details)
		require.Nil(t, next)
		body := g.ask(t, g.key, http.MethodGet, "/rejects?limit=1", "").body
		require.Regexp(t, `^\{"data":\[\{"id":"[0-9a-f-]{36}","received_at":"2026-11-20T10:00:00Z","hardware_id":"dev:0",`+
			`"unit":"dev:0","reason":"no_metric","detail":"0 minutes\.","replayed_at":null\}\],"next_cursor":"[\w-]+"\}$`, body)
	})

	t.Run("filters", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.2")
		for query, want := range map[string][]string{
			"?reason=no_metric":                                   {"0", "2", "4"},
			"?reason=not_storable":                                {},
			"?hardware_id=dev:1":                                  {"1", "4"},
			"?hardware_id=dev:1&reason=no_metric":                 {"4"},
			"?since=2026-11-20T09:58:00Z":                         {"0", "1", "2"},
			"?since=2026-11-20T09:58:00.000001Z":                  {"0", "1"},
			"?since=2026-11-20T09:56:00Z&limit=2":                 {"0", "1"},
			"?since=2030-01-01T00:00:00Z":                         {},
			"?since=2026-11-20T09:56:00Z&hardware_id=dev%3A00001": {},
		} {
			details, _ := g.rejects(t, g.key, query)
			require.Equal(t, want, details, query)
		}
		for query, param := range map[string]string{
			"?reason=no_such": "reason", "?reason=": "reason", "?reason=NO_METRIC": "reason", "?hardware_id=1": "hardware_id", "?hardware_id=": "hardware_id",
			"?limit=0": "limit", "?limit=1001": "limit", "?team=x": "team", "?reason=no_metric&reason=no_metric": "reason", "?metadata.a=b": "metadata.a",
		} {
			a := g.ask(t, g.key, http.MethodGet, "/rejects"+query, "")
			a.requireCode(t, 400, roomsensor.CodeValidationFailed)
			require.Equal(t, param, *a.failed.Error.Param, query)
		}
		for _, since := range []string{"", "yesterday", "2026-11-20", "2026-11-20T09:58:00%2B00:00"} {
			a := g.ask(t, g.key, http.MethodGet, "/rejects?since="+since, "")
			a.requireCode(t, 400, roomsensor.CodeTimeRangeInvalid)
			require.Equal(t, "since", *a.failed.Error.Param)
		}
	})

	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.2")
		first, next := g.rejects(t, g.key, "?limit=2&since=2026-11-20T09:56:00Z")
		require.Equal(t, []string{"0", "1"}, first)
		cursor := "?cursor=" + *next
		second, last := g.rejects(t, g.key, cursor)
		require.Equal(t, []string{"2", "3"}, second)
		third, end := g.rejects(t, g.key, "?limit=9&cursor="+*last)
		require.Equal(t, []string{"4"}, third)
		require.Nil(t, end)
		same, _ := g.rejects(t, g.key, cursor+"&since=2026-11-20T09:56:00.000Z&limit=1")
		require.Equal(t, []string{"2"}, same)
		for query, param := range map[string]string{
			"&since=2026-11-20T09:57:00Z": "since", "&reason=no_metric": "reason", "&hardware_id=dev:1&reason=no_metric": "hardware_id",
		} {
			a := g.ask(t, g.key, http.MethodGet, "/rejects"+cursor+query, "")
			a.requireCode(t, 400, roomsensor.CodeValidationFailed)
			require.Equal(t, param, *a.failed.Error.Param)
		}
		for _, bad := range []string{"", "x", (*next)[:len(*next)-1]} {
			g.ask(t, g.key, http.MethodGet, "/rejects?cursor="+bad, "").requireCode(t, 400, roomsensor.CodeCursorInvalid)
		}
	})

	t.Run("another team sees nothing of it", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.2")
		theirs, _ := g.rejects(t, g.otherKey, "")
		require.Equal(t, []string{"100", "101", "102", "103", "104", "105"}, theirs)
		filtered, _ := g.rejects(t, g.otherKey, "?hardware_id=dev:1")
		require.Empty(t, filtered)
		_, next := g.rejects(t, g.key, "?limit=2")
		g.ask(t, g.otherKey, http.MethodGet, "/rejects?cursor="+*next, "").requireCode(t, 400, roomsensor.CodeCursorTeamMismatch)
		_, colleague := g.keys.add(g.team, false)
		ours, _ := g.rejects(t, colleague, "?limit=2")
		require.Equal(t, []string{"0", "1"}, ours)
		g.ask(t, colleague, http.MethodGet, "/rejects?cursor="+*next, "").requireCode(t, 400, roomsensor.CodeCursorTeamMismatch)
	})

	t.Run("HEAD, ETag and compression", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 42 a", "decision 42 b", "decision 42 c")
		get := g.ask(t, g.key, http.MethodGet, "/rejects", "")
		tag := get.header.Get("ETag")
		head := g.ask(t, g.key, http.MethodHead, "/rejects", "")
		require.Equal(t, []string{tag, fmt.Sprint(len(get.body))}, []string{head.header.Get("ETag"), head.header.Get("Content-Length")})
		require.Equal(t, http.StatusNotModified, g.ask(t, g.key, http.MethodGet, "/rejects", "", "If-None-Match", tag).status)
		require.Equal(t, "gzip", g.ask(t, g.key, http.MethodGet, "/rejects", "", "Accept-Encoding", "gzip").header.Get("Content-Encoding"))

		conformance.Covers(t, "decision 49 a")
		var tags []string
		for range 3 {
			tags = append(tags, g.ask(t, g.key, http.MethodGet, "/rejects?limit=1", "").header.Get("ETag"))
		}
		require.Less(t, len(slices.Compact(tags)), 3, "half a day may end between two of them, but only once")
	})
}

// wordyDatabase has a thousand rejects of 20 kB.
type wordyDatabase struct{ secretDatabase }

func (wordyDatabase) TeamRejects(
	_ context.Context, _ uuid.UUID, q roomsensor.TeamRejectQuery,
) (rejects []roomsensor.Reject, err error) {
	for i := range 1000 {
		r := roomsensor.Reject{
			ID: uuid.UUID{byte((1000 - i) >> 8), byte(1000 - i)}, Arrival: roomsensor.Arrival{At: rejectedAt},
			Reason: roomsensor.ReasonFieldInvalid, Detail: strings.Repeat("x", 20_000),
		}
		if q.After == nil || slices.Compare(r.ID[:], q.After.ID[:]) < 0 {
			rejects = append(rejects, r)
		}
	}
	return rejects[:min(len(rejects), q.Limit)], nil
}

// Pages have at most 8 MiB. The memory of the receiver has room for them, and gets it back.
func TestRejectsPageBytes(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 52")
	g := &databaseServer{testServer: newTestServer(t)}
	g.receiver.Database = wordyDatabase{}
	read, query := 0, ""
	for pages := 1; ; pages++ {
		a := g.ask(t, g.key, http.MethodGet, "/rejects"+query, "")
		require.LessOrEqual(t, len(a.body), roomsensor.MaxPageBytes)
		var page rejectPage
		require.NoError(t, json.Unmarshal([]byte(a.body), &page))
		read += len(page.Data)
		if page.NextCursor == nil {
			require.Equal(t, []int{3, 1000}, []int{pages, read})
			break
		}
		require.Greater(t, len(a.body), roomsensor.MaxPageBytes-21_000)
		query = "?cursor=" + *page.NextCursor
	}
	require.Eventually(t, func() bool { return g.receiver.memory.Used() == 0 }, patience, time.Millisecond)
}

// report is the response to a dry run.
func (g *databaseServer) report(t *testing.T, key, body string) (r dryRunReport) {
	t.Helper()
	a := g.ask(t, key, http.MethodPost, "/uploads?dry_run=true", body)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.NoError(t, json.Unmarshal([]byte(a.body), &r))
	return r
}

// Package worker compares the report with what a worker rejects.
func TestDryRun(t *testing.T) {
	t.Parallel()
	g := newDatabaseServer(t)
	g.install(t, g.team, "dev:1", nil)
	g.install(t, g.team, "dev:2", new(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)))
	g.install(t, g.other, "dev:3", nil)
	const at = `{"measured_at":"2025-11-20T09:55:00Z"`

	t.Run("reports what a worker would, and stores nothing", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.1", "A8.4")
		body := `{"hardware_id":"dev:1","readings":[` + at + `,"lux":1}]}` + "\n\n" +
			`{"hardware_id":"dev:2","battery":1,"readings":[` + at + `,"lux":1},7]}` + "\n" +
			`{"hardware_id":"dev:3","readings":[]}` + "\n" +
			`{"hardware_id":"dev:1","signal":1,"readings":[` + at + `,"co2":1},` + at + `,"lux":"x"}]}`
		require.Equal(t, dryRunReport{
			Uploads: 4, Readings: 5,
			Rejects: []reportedReject{
				{2, roomsensor.ReasonMeasuredAtInvalid, "measured_at is missing or not a UTC time such as 2026-01-31T08:00:00Z in 1 of 2 readings."},
				{2, roomsensor.ReasonNotInstalled, "The unit was in no device at measured_at of 1 of 2 readings. If it was, correct its installation times and replay this reject."},
				{3, roomsensor.ReasonUnknownUnit, `No device of the credential's team ever had the unit "dev:3". Register it, with its installation time, and replay this reject.`},
				{4, roomsensor.ReasonNoMetric, "None of the metrics co2_ppm, temp_c, humidity_pct, lux, spl_db is a member of 1 of 2 readings. Check their names in the sender."},
				{4, roomsensor.ReasonValueInvalid, "lux is not a number (in quotes it is a text) and becomes null in 1 of 2 readings."},
				{4, roomsensor.ReasonFieldInvalid, "signal malformed and ignored."},
			},
			IgnoredFields: []string{"battery", "co2"},
		}, g.report(t, g.key, body))
		require.Equal(t, dryRunReport{Uploads: 1, Rejects: []reportedReject{}, IgnoredFields: []string{}},
			g.report(t, g.otherKey, `{"hardware_id":"dev:3","readings":[]}`))
		stream, err := g.js.Stream(g.ctx, "UPLOADS")
		require.NoError(t, err)
		require.Zero(t, stream.CachedInfo().State.Msgs)
		kept, err := g.owner.Rejects(t.Context(), roomsensor.RejectQuery{Limit: 1})
		require.NoError(t, err)
		require.Empty(t, kept)
	})

	t.Run("at most 1000 rejects", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.4")
		line := `{"hardware_id":"dev:404","readings":[{"lux":1},` + at + `}]}` + "\n"
		r := g.report(t, g.key, `{"hardware_id":"dev:1","readings":[]}`+"\n"+strings.Repeat(line, 3*lookupUploads))
		require.Equal(t, []int{3*lookupUploads + 1, 6 * lookupUploads, 1000}, []int{r.Uploads, r.Readings, len(r.Rejects)})
		require.Equal(t, []int{2, 2, 501}, []int{r.Rejects[0].Line, r.Rejects[1].Line, r.Rejects[999].Line})
	})

	t.Run("rejects beyond the first lookup", func(t *testing.T) {
		t.Parallel()
		r := g.report(t, g.key, strings.Repeat(`{"hardware_id":"dev:1","readings":[]}`+"\n", lookupUploads)+`{"hardware_id":"dev:404","readings":[]}`)
		require.Len(t, r.Rejects, 1)
		require.Equal(t, lookupUploads+1, r.Rejects[0].Line)
	})

	// It runs before the parallel subtests: the key has no room for its large bodies beside theirs.
	t.Run("refuses what an upload is refused for", func(t *testing.T) {
		conformance.Covers(t, "A8.1")
		for _, query := range []string{"", "?dry_run=true"} {
			g.ask(t, g.key, http.MethodPost, "/uploads"+query, "hello").requireCode(t, 400, roomsensor.CodeValidationFailed)
			g.ask(t, g.key+"x", http.MethodPost, "/uploads"+query, small).requireCode(t, 401, roomsensor.CodeIngestKeyInvalid)
			g.ask(t, g.key, http.MethodPost, "/uploads"+query, strings.Repeat(" ", MaxBody+1)).requireCode(t, 413, roomsensor.CodeRequestTooLarge)
		}
	})
}

// A misspelled dry_run must not store anything.
func TestUploadParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A8.5", "A8.3")
	g := newTestServer(t)
	for query, param := range map[string]string{
		"?dry_run=True": "dry_run", "?dry_run=1": "dry_run", "?dry_run=": "dry_run", "?dry_run": "dry_run", "?dryrun=true": "dryrun", "?dry-run=true": "dry-run",
		"?dry_run=true&x=1": "x", "?dry_run=true&dry_run=true": "dry_run", "?limit=1": "limit", "?" + g.key + "=1": "rsi_...",
	} {
		a := g.do(t, http.MethodPost, "/uploads"+query, strings.NewReader(small), "Authorization", "Bearer "+g.key)
		a.requireCode(t, 400, roomsensor.CodeValidationFailed)
		require.Equal(t, param, *a.failed.Error.Param, query)
	}
	g.do(t, http.MethodPost, "/uploads?dry_run=%zz", strings.NewReader(small), "Authorization", "Bearer "+g.key).
		requireCode(t, 400, roomsensor.CodeValidationFailed)
	require.Empty(t, g.inStream(t))
	g.do(t, http.MethodPost, "/uploads?dry_run=false", strings.NewReader(second), "Authorization", "Bearer "+g.key).requireStored(t, 1, 1)
	require.Len(t, g.inStream(t), 1)
}

// heldDatabase holds every query until it is released.
type heldDatabase struct {
	Database
	entered chan struct{}
	release chan struct{}
}

func (d *heldDatabase) Installations(ctx context.Context, _ []string) (map[string][]roomsensor.Installation, error) {
	d.entered <- struct{}{}
	select {
	case <-d.release:
		return map[string][]roomsensor.Installation{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Both requests need the database, with which uploads go on without it. They count for the share of the credential, and
// one team cannot take the connections from another.
func TestDatabaseUses(t *testing.T) {
	t.Parallel()

	t.Run("without a database", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "A8.6")
		g := newDatabaseServer(t)
		closed, err := store.Open(t.Context(), "postgres://localhost:1/none", store.Ingest)
		require.NoError(t, err)
		t.Cleanup(closed.Close)
		g.receiver.Database = closed
		for _, a := range []answer{
			g.ask(t, g.key, http.MethodPost, "/uploads?dry_run=true", small), g.ask(t, g.key, http.MethodGet, "/rejects", ""),
		} {
			a.requireCode(t, 503, roomsensor.CodeOverloaded)
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
		require.Equal(t, http.StatusAccepted, g.post(t, small).status)
	})

	t.Run("count for the share", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 53 a 2")
		g := newDatabaseServer(t)
		g.receiver.rates = frozenRates(1, 1<<40)
		for range burstSeconds / 2 {
			g.report(t, g.key, small)
			g.rejects(t, g.key, "")
		}
		g.post(t, small).requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
		g.ask(t, g.key, http.MethodGet, "/rejects", "").requireCode(t, 429, roomsensor.CodeRateLimitExceeded)
	})

	t.Run("of a team are limited", func(t *testing.T) {
		t.Parallel()
		g := newTestServer(t)
		held := &heldDatabase{entered: make(chan struct{}, 2*maxTeamDatabaseUses), release: make(chan struct{})}
		g.receiver.Database, g.receiver.database.wait, g.receiver.database.limit = held, patience, patience
		_, otherKey := g.keys.add(uuid.New(), false)
		statuses := make(chan int, maxTeamDatabaseUses+1)
		var group sync.WaitGroup
		post := func(key string) {
			group.Go(func() { statuses <- g.tryPath(key, "/uploads?dry_run=true", small) })
		}
		for range maxTeamDatabaseUses {
			post(g.key)
		}
		for range maxDatabaseUses {
			<-held.entered
		}
		require.Eventually(t, func() bool { return g.receiver.database.teams.Used() == maxTeamDatabaseUses }, patience, time.Millisecond)
		a := g.do(t, http.MethodPost, "/uploads?dry_run=true", strings.NewReader(small), "Authorization", "Bearer "+g.key)
		a.requireCode(t, 503, roomsensor.CodeOverloaded)
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Equal(t, http.StatusAccepted, g.post(t, small).status, "uploads do not need the database")
		post(otherKey)
		close(held.release)
		group.Wait()
		close(statuses)
		for status := range statuses {
			require.Equal(t, http.StatusOK, status)
		}
		require.Zero(t, g.receiver.database.teams.Used())
	})

	t.Run("that wait too long are refused", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			uses := newDatabaseUses()
			for range maxDatabaseUses {
				_, err := uses.total.Try(fairshare.Owner{}, 1)
				require.NoError(t, err)
			}
			q := &request{Receiver: &Receiver{database: uses}, r: &http.Request{}}
			err := q.useDatabase(uuid.New(), func(context.Context) error { panic("it is not its turn") })
			require.Equal(t, roomsensor.CodeOverloaded, httpedge.PublicError(err).Code)
		})
	})
}
