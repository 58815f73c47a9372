package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// broken is the real backend, but for GET /team.
type broken struct {
	api.Backend
	team func(ctx context.Context) error
}

func (b *broken) Team(ctx context.Context, _ uuid.UUID) (roomsensor.Team, error) {
	return roomsensor.Team{}, b.team(ctx)
}

// Decisions 34 and 35: every code of the API can be met, with its status and
// its envelope.
func TestEveryCodeIsReachable(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8.2")
	conformance.Covers(t, "decision 34.1", "decision 34.2", "decision 34.5", "decision 34.6")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	revoked := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, revoked)
	_, err := f.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	past := start.Add(-time.Second)
	expired := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &past})
	limited := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	id, _, _ = roomsensor.ParseKey(roomsensor.APIKey, limited)
	f.exec(t, `INSERT INTO rate_windows SELECT $1, array_agg(clock_timestamp()) FROM generate_series(1, 600)`, id)
	cursor := f.firstCursor(t, readingsPath+"?limit=1")
	failing := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return errDatabaseLost }}, nil)
	away := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return context.DeadlineExceeded }}, nil)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(3, 1001) i`, teamID)

	unknown := number(9, 9).String()
	answers := map[roomsensor.Code]struct {
		got   response
		param string
	}{
		roomsensor.CodeAPIKeyMissing:        {f.get(t, "/team", withoutKey), ""},
		roomsensor.CodeAPIKeyInvalid:        {f.get(t, "/team", withKey("x")), ""},
		roomsensor.CodeAPIKeyRevoked:        {f.get(t, "/team", withKey(revoked)), ""},
		roomsensor.CodeAPIKeyExpired:        {f.get(t, "/team", withKey(expired)), ""},
		roomsensor.CodeInsufficientScope:    {f.patch(t, `{}`, withKey(f.readKey)), ""},
		roomsensor.CodeRateLimitExceeded:    {f.get(t, "/team", withKey(limited)), ""},
		roomsensor.CodeValidationFailed:     {f.get(t, "/devices?limit=0"), "limit"},
		roomsensor.CodeTimeRangeInvalid:     {f.get(t, readingsPath+"?from=x"), "from"},
		roomsensor.CodeTimeRangeTooWide:     {f.get(t, readingsPath+"?last=91d"), "last"},
		roomsensor.CodeCursorInvalid:        {f.get(t, readingsPath+"?cursor=x"), "cursor"},
		roomsensor.CodeCursorTeamMismatch:   {f.get(t, readingsPath+"?cursor="+cursor, withKey(f.readKey)), "cursor"},
		roomsensor.CodeCursorDeviceMismatch: {f.get(t, "/devices/"+other.String()+"/readings?cursor="+cursor), "cursor"},
		roomsensor.CodeDeviceNotFound:       {f.get(t, "/devices/"+unknown), "device_id"},
		roomsensor.CodeAssignmentNotFound:   {f.get(t, readingsPath+"?assignment_id="+unknown), "assignment_id"},
		roomsensor.CodeCSVTooLarge:          {f.get(t, "/readings.csv?shape=wide"), ""},
		roomsensor.CodeRequestTooLarge:      {f.patch(t, strings.Repeat(" ", 64<<10+1)), ""},
		roomsensor.CodeNotImplemented:       {f.patch(t, `{"assignment":1}`), "assignment"},
		roomsensor.CodeNotFound:             {f.get(t, "/nothing"), ""},
		roomsensor.CodeMethodNotAllowed:     {f.do(t, http.MethodPut, "/team", ""), ""},
		roomsensor.CodeOverloaded:           {away.do(t, http.MethodGet, "/v1/team", "", withKey(f.key)), ""},
		roomsensor.CodeInternalError:        {failing.do(t, http.MethodGet, "/v1/team", "", withKey(f.key)), ""},
	}
	for _, info := range roomsensor.Codes {
		require.True(t, strings.HasPrefix(string(info.Code), "ingest_") || answers[info.Code].got.status != 0, info.Code)
	}
	for code, tc := range answers {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			tc.got.requireError(t, code, tc.param)
			require.Equal(t, "application/json; charset=utf-8", tc.got.header.Get("Content-Type"))
			require.Equal(t, tc.got.status == http.StatusServiceUnavailable || tc.got.status == http.StatusTooManyRequests,
				tc.got.header.Get("Retry-After") != "")
			requireGolden(t, "error_"+string(code)+".json.golden", tc.got.body)
		})
	}
}

// Decision 36; a panic is an answer too, and its stack is the log's alone.
func TestFailuresAreToldToNobody(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 36")
	f := setup(t)
	const secret = "SELECT secret FROM pg_10.1.2.3"
	for name, fail := range map[string]func(context.Context) error{
		"error":   func(context.Context) error { return errors.New(secret) },
		"panic":   func(context.Context) error { panic(secret) },
		"runtime": func(context.Context) error { return any(secret).(error) },
	} {
		replica := f.serve(t, &broken{backend{f.store}, fail}, nil)
		got := replica.do(t, http.MethodGet, "/v1/team", "", withKey(f.key))
		got.requireError(t, roomsensor.CodeInternalError, "")
		require.NotContains(t, fmt.Sprint(got), "SELECT")
		require.NotContains(t, string(got.body), "goroutine")
		require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
		line := replica.log.String()
		require.Contains(t, line, `"level":"error"`)
		require.Equal(t, name != "error", strings.Contains(line, "goroutine"), "the stack of a panic")
		require.Equal(t, http.StatusOK, replica.do(t, http.MethodGet, "/v1/devices", "", withKey(f.key)).status)
	}
}

// A process that is told to end at once answers what it breaks off.
func TestEndOfTheProcessIsAnAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	work, end := context.WithCancel(t.Context())
	wait := func(ctx context.Context) error { end(); <-ctx.Done(); return ctx.Err() }
	f.replica = f.serve(t, &broken{backend{f.store}, wait}, nil, func(s *http.Server) {
		s.BaseContext = func(net.Listener) context.Context { return work }
	})
	f.get(t, "/team").requireError(t, roomsensor.CodeOverloaded, "")
}

// Decision 26, spec 5, rule 5: with debug logs, errors, panics and everything.
func TestKeysReachNoLogMetricOrError(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 26.1")
	f := setup(t)
	registry := prometheus.NewRegistry()
	explode := &broken{backend{f.store}, func(context.Context) error { panic("boom") }}
	f.replica = f.serve(t, explode, func(cfg *api.Config) { cfg.Metrics = registry })
	_, canary, ok := roomsensor.ParseKey(roomsensor.APIKey, f.key)
	require.True(t, ok)
	inURL := "key=" + f.key
	var answers strings.Builder
	for _, path := range []string{
		"/readings.csv?" + inURL, "/readings.csv?x=1&" + inURL, "/readings.csv?" + inURL + "&" + inURL,
		"/readings.csv?" + inURL + "&from=%zz", "/readings.csv?" + f.key, "/readings.csv?" + f.key + "=1&" + inURL,
		"/readings.csv?" + inURL + ";a", "/readings.csv?" + inURL + "%00", "/team?" + inURL, "/team?" + f.key + "=x",
		"/devices?metadata." + f.key + "=%ff", "/" + f.key, "/devices/" + f.key, "/readings.csv/?" + inURL,
		"/readings.csv?shape=" + f.key, "/readings.csv?devices=" + f.key, "/devices?cursor=" + f.key, "/devices?limit=" + f.key,
	} {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			for _, auth := range []option{withKey(f.key), withKey(f.key + "x"), withoutKey, header("Authorization", f.key)} {
				got := f.do(t, method, path, "", auth)
				require.Less(t, got.status, 500, path)
				fmt.Fprint(&answers, got)
			}
		}
	}
	f.get(t, "/team").requireError(t, roomsensor.CodeInternalError, "")
	require.NotContains(t, answers.String(), canary)
	require.NotContains(t, f.log.String(), canary)
	require.Contains(t, f.log.String(), "goroutine")
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(families), canary)
}

func TestMetricsAreByRoute(t *testing.T) {
	t.Parallel()
	f := setup(t)
	registry := prometheus.NewRegistry()
	f.replica = f.serve(t, backend{f.store}, func(cfg *api.Config) { cfg.Metrics = registry })
	f.get(t, "/devices/"+deviceID.String())
	f.get(t, "/devices/"+number(9, 9).String())
	f.get(t, "/nothing")
	f.do(t, "BREW", "/team", "")
	families, err := registry.Gather()
	require.NoError(t, err)
	var requests []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "roomsensor_api_requests_total" {
				requests = append(requests, fmt.Sprint(m.GetLabel(), m.GetCounter().GetValue()))
			}
		}
	}
	for i, want := range []string{
		"/v1/devices/:device_id.*200.* 1$", "/v1/devices/:device_id.*404.* 1$", "unmatched.*404.* 1$", "other.*/v1/team.*405.* 1$",
	} {
		require.Len(t, requests, 4)
		slices.Sort(requests)
		require.Regexp(t, want, requests[i])
	}
	_, err = api.New(api.Config{CursorSecret: make([]byte, 32), Docs: docsStub, Metrics: registry}, backend{f.store})
	require.ErrorContains(t, err, "metrics")
}

// The HTTP server's own log shows neither queries nor keys.
func TestServerLogIsQuiet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	server := api.NewServer("", http.NotFoundHandler(), zerolog.New(&out))
	server.ErrorLog.Println("http: odd request GET /v1/readings.csv?a=b&key=rsk_id_secret HTTP/1.1")
	server.ErrorLog.Println("http: odd key=secret and rsk_id_secret and rsi_id_secret")
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), "odd request GET /v1/readings.csv")
}

func TestDocs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	require.Equal(t, "the docs", string(f.replica.do(t, http.MethodGet, "/docs", "").body))
	root := f.replica.do(t, http.MethodGet, "/", "")
	require.Equal(t, http.StatusFound, root.status)
	require.Equal(t, docsURL, root.header.Get("Location"))
	_, err := api.New(api.Config{CursorSecret: []byte("short"), Docs: docsStub}, backend{f.store})
	require.Error(t, err)
}
