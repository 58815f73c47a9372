package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/compress"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/openapitest"
)

// RouteTable returns every route of the router, as "GET /v1/team". Tests outside of the package use it.
func RouteTable() []string {
	s := &server{}
	var all []string
	for _, r := range s.router(http.NotFoundHandler()).(*echo.Echo).Routes() {
		if r.Method != echo.RouteNotFound {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	slices.Sort(all) // By method, then path.
	return all
}

// Router returns the router of a handler from New.
func Router(handler http.Handler) *echo.Echo {
	return handler.(*apiHandler).Handler.(*echo.Echo)
}

var parameterInPath = regexp.MustCompile(`:(\w+)`)

// Operation returns the name of a route in the OpenAPI document: "GET /team"; ok is false outside of {base_url}.
func Operation(route string) (name string, ok bool) {
	method, path, _ := strings.Cut(route, " ")
	path, ok = strings.CutPrefix(path, version)
	return method + " " + parameterInPath.ReplaceAllString(path, "{$1}"), ok
}

// The router has the operations of the OpenAPI document, the root, the docs, and one route that only refuses.
func TestRoutes(t *testing.T) {
	t.Parallel()
	var operations, others []string
	for _, route := range RouteTable() {
		if name, ok := Operation(route); ok {
			operations = append(operations, name)
		} else {
			others = append(others, route)
		}
	}
	refusing := "PATCH /devices/current"
	require.Contains(t, operations, refusing)
	operations = slices.DeleteFunc(operations, func(name string) bool { return name == refusing })
	require.ElementsMatch(t, openapitest.API().Operations(), operations)
	require.Equal(t, []string{
		"GET /", "GET /docs", "GET /docs/*", "GET /favicon.ico", "GET /openapi.json", "GET /openapi.yaml", "GET /robots.txt",
		"HEAD /", "HEAD /docs", "HEAD /docs/*", "HEAD /favicon.ico", "HEAD /openapi.json", "HEAD /openapi.yaml", "HEAD /robots.txt",
	}, others)
}

// FuzzPatch checks parsePatch: an accepted body can be stored, and any other causes a documented error (decisions 19 to
// 21).
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"display_name":"x"}`, `{"metadata":{"a":"b","c":null}}`, `{"metadata":null}`, `{"assignment":1}`, `{`, `[]`,
		`{"display_name":"\ud800"}`, "{\"metadata\":{\"a\":\"\xff\"}}", `{"metadata":{"a":1,"a":2}}`, `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		patch, err := parsePatch(body)
		if err != nil {
			var answer *roomsensor.Error
			require.ErrorAs(t, err, &answer)
			require.Contains(t, []roomsensor.Code{roomsensor.CodeValidationFailed, roomsensor.CodeNotImplemented}, answer.Code)
			return
		}
		if patch.DisplayName != nil {
			require.NoError(t, roomsensor.CheckName(*patch.DisplayName))
		}
		for key, value := range patch.Metadata.Values {
			require.NoError(t, roomsensor.CheckMetadataKey(key))
			if value != nil {
				require.NoError(t, roomsensor.CheckMetadataValue(*value))
			}
		}
		require.True(t, patch.SetDisplayName || patch.Metadata.Clear || patch.Metadata.Values != nil)
		require.True(t, utf8.Valid(body))
	})
}

// deny denies every request for ten minutes.
type deny struct{}

func (deny) CountRequest(context.Context, string) (roomsensor.RateVerdict, error) {
	return roomsensor.RateVerdict{Reset: roomsensor.RateWindow}, nil
}

// TestRateLimiterDenials checks that the number of denials in memory is bounded, also while none has expired.
func TestRateLimiterDenials(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(nil, nil)
	require.NoError(t, err)
	l := newRateLimiter(deny{}, time.Now, m.rate)
	for i := range maxDenials + 10 {
		keyID := strconv.Itoa(i)
		_, err := l.verdict(t.Context(), keyID)
		require.NoError(t, err)
		_, denied := l.denied[keyID]
		require.True(t, denied)
	}
	require.Len(t, l.denied, maxDenials)
}

// An export takes at most as many devices as can be sorted, and 1,000 in the wide shape (decision 29 h).
func TestDeviceCount(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkWideCount(maxWideDevices))
	require.Error(t, checkWideCount(maxWideDevices+1))
	require.NoError(t, checkDeviceCount(roomsensor.MaxExportDevices))
	require.Error(t, checkDeviceCount(roomsensor.MaxExportDevices+1))
}

// Four exports of a key and eight in all run at the same time, and each team always gets its share (decision 32 f and
// i).
func TestExportSlots(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 i")
	slots := newExportSlots(maxExports)
	acquire := func(team, key byte) (running int) {
		for {
			_, ok := slots.acquire(roomsensor.Key{ID: string([]byte{team, key}), TeamID: uuid.UUID{team}})
			if !ok {
				return running
			}
			running++
		}
	}
	for i, want := range []int{4, 4, 0} {
		require.Equal(t, want, acquire(1, byte(i)), "eight of a team alone")
	}
	require.Equal(t, 4, acquire(2, 0), "half of what remains")
	require.Equal(t, 2, acquire(3, 0))
	require.Equal(t, 1, acquire(4, 0))
	require.Equal(t, 1, acquire(5, 0))
	require.Zero(t, acquire(6, 0), "all slots are taken")

	require.InDelta(t, 16, slots.count(false), 0)
	for slot := range slots.running {
		slot.began = time.Now().Add(-time.Hour)
		slot.send()
		break
	}
	require.InDelta(t, 15, slots.count(false), 0)
	require.InDelta(t, 1, slots.count(true), 0)
	require.GreaterOrEqual(t, slots.oldest(), time.Hour.Seconds())
	for slot := range slots.running {
		slot.release()
	}
	require.Zero(t, slots.oldest())
	require.Equal(t, 4, acquire(6, 0), "after a release")
}

// slowDeadline is a response whose SetWriteDeadline takes its time.
type slowDeadline struct {
	http.ResponseWriter

	began chan struct{}
	ended atomic.Bool
}

func (w *slowDeadline) SetWriteDeadline(time.Time) error {
	close(w.began)
	<-time.After(50 * time.Millisecond)
	w.ended.Store(true)
	return nil
}

// TestSendInTimeEnds checks that nothing uses the response of an export after its end: echo gives it to another request.
func TestSendInTimeEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	response := &slowDeadline{ResponseWriter: httptest.NewRecorder(), began: make(chan struct{})}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	c := &call{Context: echo.New().NewContext(request, response)}
	err := sendInTime(ctx, c, &download{body: func(ctx context.Context, _ *exportWriter) error {
		cancel()
		<-response.began
		return ctx.Err()
	}}, compress.Identity)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, response.ended.Load())
}
