package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
)

// Of every operation 100 checks are made, of so many requests each. RAPID_CHECKS
// makes more of them.
const requestsACheck = 3

// Requests made from the OpenAPI document, valid and broken ones, find no
// answer that the document does not know, and no failure. A request that the
// document takes is not refused, one that it refuses is never carried out.
func TestRequestsFromTheDocument(t *testing.T) {
	t.Parallel()
	f := &judge{fixture: setup(t)}
	client, cursors := f.populate(t), f.cursors(t)
	var sent atomic.Int64
	t.Cleanup(func() { t.Logf("%d requests", sent.Load()) })
	for _, operation := range openapitest.API().Operations() {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			_, path, _ := strings.Cut(operation, " ")
			own := *client
			own.Samples = maps.Clone(client.Samples)
			own.Samples["cursor"] = cursors[path]
			requests := own.Requests(operation)
			rapid.Check(t, func(r *rapid.T) {
				for range requestsACheck {
					f.judge(r, requests.Draw(r, "request"))
					sent.Add(1)
				}
			})
		})
	}
}

// judge is a fixture with an opinion on answers.
type judge struct {
	*fixture
	mu sync.Mutex // of what is changed by SQL
}

// judge sends a request and holds the answer to the document.
func (f *judge) judge(t *rapid.T, request *openapitest.Request) {
	made, err := request.HTTP(f.server.URL)
	require.NoError(t, err)
	got := f.send(made)
	require.NoError(t, got.err, "%s", request)
	f.letTimePass(t, got)
	code := got.code()
	require.True(t, got.status < 500 || code == roomsensor.CodeNotImplemented, "%d to %s", got.status, request)
	if f.refusable(request, made) {
		require.GreaterOrEqual(t, got.status, 400, "%s", request)
	}
	if len(request.Faults) == 0 {
		require.True(t, got.status != http.StatusBadRequest || f.beyondSchemas(request, made, code), "%s to %s", got.body, request)
	}
}

func (r response) code() roomsensor.Code {
	var envelope errorBody
	_ = json.Unmarshal(r.body, &envelope) // Answers to HEAD have none.
	return roomsensor.Code(envelope.Error.Code)
}

// letTimePass moves the windows of the rate limit on before they are full, and
// forgets the tags that a change made, of which there may be 50.
func (f *judge) letTimePass(t *rapid.T, got response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if left, err := strconv.Atoi(got.header.Get("RateLimit-Remaining")); err == nil && left < 100 {
		_, err = f.sql.Exec(context.Background(), `UPDATE rate_windows
			SET hit_at = hit_at - INTERVAL '10 minutes' WHERE hit_at < now()`)
		require.NoError(t, err)
	}
	if got.request.Method == http.MethodPatch && got.status == http.StatusOK {
		_, err := f.sql.Exec(context.Background(), `UPDATE devices SET metadata = '{"site":"north"}'`)
		require.NoError(t, err)
	}
}

// refusable reports whether a fault is one that has to be found: beside last,
// from and to are not looked at.
func (f *judge) refusable(request *openapitest.Request, made *http.Request) bool {
	only := []openapitest.Fault{openapitest.BadParameter}
	ignored := made.URL.Query().Has("last") && slices.Equal(slices.Compact(slices.Clone(request.Faults)), only)
	return len(request.Faults) > 0 && !ignored
}

// beyondSchemas reports whether a request is refused with reason though it is
// valid by the schemas, which do not know what a cursor is and how times lie to
// each other.
func (f *judge) beyondSchemas(request *openapitest.Request, made *http.Request, code roomsensor.Code) bool {
	if made.Method == http.MethodHead {
		code = roomsensor.CodeTimeRangeTooWide // It is not told which of them.
	}
	q := made.URL.Query()
	instant := func(name string, otherwise time.Time) time.Time {
		at, err := time.Parse(time.RFC3339Nano, q.Get(name))
		if err != nil {
			return otherwise
		}
		return at.Truncate(time.Microsecond)
	}
	now := f.clock.now()
	to := instant("to", now)
	from := instant("from", to.Add(-24*time.Hour))
	tooWide := to.Sub(from) > 90*24*time.Hour
	if last := q.Get("last"); last != "" {
		n, err := strconv.ParseFloat(last[:len(last)-1], 64)
		tooWide = err != nil || n*map[byte]float64{'m': 1, 'h': 60, 'd': 1440}[last[len(last)-1]] > 90*1440
	}
	switch {
	case slices.Contains(request.Sent, "cursor"):
		return strings.HasPrefix(string(code), "cursor_") || code == roomsensor.CodeValidationFailed ||
			strings.HasPrefix(string(code), "time_range_")
	case code == roomsensor.CodeTimeRangeTooWide:
		return tooWide || (made.Method == http.MethodHead && !from.Before(to))
	case code == roomsensor.CodeTimeRangeInvalid:
		return !from.Before(to)
	}
	return false
}

// populate fills the database, and says who asks and what means something.
func (f *fixture) populate(t *testing.T) *openapitest.Client {
	t.Helper()
	second, foreign := number(0xde, 2), number(0xde, 3)
	f.addTeam(t, number(0x7e, 2))
	f.addDevice(t, teamID, second, "dev:2")
	f.addDevice(t, number(0x7e, 2), foreign, "dev:3")
	f.nameDevice(t, deviceID, `=1+1, "quoted"`)
	f.exec(t, `UPDATE devices SET metadata = '{"site":"north"}'`)
	for i, device := range []int{1, 1, 2, 3} {
		from := start.Add(-time.Duration(20-4*i) * time.Hour)
		f.addAssignment(t, number(0xde, device), number(0xa5, i+1), from, new(from.Add(time.Hour)))
	}
	f.addReadings(t, deviceID, start.Add(-60*time.Hour), 720)
	f.addReadings(t, foreign, start.Add(-60*time.Hour), 720)
	id := deviceID.String()
	return &openapitest.Client{
		Document: openapitest.API(), Keys: []string{f.key, f.key, f.key, f.key, f.readKey}, BadKeys: f.badKeys(t), MaxBody: 64 << 10,
		Samples: openapitest.Samples{
			"device_id":         {id, id, strings.ToUpper(id), second.String(), foreign.String(), number(9, 9).String()},
			"devices":           {id, second.String(), id, second.String(), foreign.String()},
			"assignment_id":     {number(0xa5, 1).String(), number(0xa5, 2).String(), number(0xa5, 3).String(), number(0xa5, 4).String()},
			"from":              {"2026-11-20T00:00:00Z", "2026-11-19T12:30:00.123456789Z", "2026-08-22T10:00:00Z"},
			"to":                {"2026-11-20T10:00:00Z", "2026-11-20T12:30:00Z", "2026-11-21T10:00:00Z"},
			"last":              {"24h", "90d", "1m", "0024h", "91d"},
			"name in metadata":  {"site", "metadata.site", "metadata.metadata.site", "a.b:c-d_9"},
			"value in metadata": {"north", "", "south"},
			"Idempotency-Key":   {"one", "two"},
		},
	}
}

func (f *fixture) badKeys(t *testing.T) []string {
	t.Helper()
	past := start.Add(-time.Second)
	expired := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &past})
	revoked := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, revoked)
	_, err := f.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	limited := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeReadWrite})
	f.fillWindow(t, limited, slices.Repeat([]time.Time{time.Now().AddDate(0, 0, 1)}, roomsensor.RateLimit))
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	_, upload, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	return []string{expired, revoked, limited, unknown, upload, wrongSecret(f.key), "x", ""}
}

// cursors are of every list, by its path: good ones as a rule, and such as are
// of another list, another key, bent, cut or too old.
func (f *fixture) cursors(t *testing.T) map[string][]string {
	t.Helper()
	const device = "/devices/{device_id}"
	all := map[string][]string{}
	collect := func(key string, times int) {
		for _, path := range []string{"/devices", "/devices/current", device + "/assignments", device + "/readings"} {
			page := decode[list[map[string]any]](t, f.get(t, strings.ReplaceAll(path, "{device_id}", deviceID.String())+"?limit=1", withKey(key)))
			require.NotNil(t, page.NextCursor, path)
			all[path] = append(all[path], slices.Repeat([]string{*page.NextCursor}, times)...)
		}
	}
	f.clock.advance(-25 * time.Hour)
	collect(f.key, 1)
	f.clock.advance(25 * time.Hour)
	collect(f.readKey, 2)
	collect(f.key, 6)
	other := all["/devices"][0]
	for path, own := range all {
		all[path] = append(own, other, own[0][:20], own[0]+"A", strings.ToUpper(own[0]))
	}
	return all
}
