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
	conformance.Covers(t, "spec 5, rule 5, secret")
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
