package upgrade

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBackend returns a process that is ready and calls handle.
func newBackend(t *testing.T, version string, handle http.HandlerFunc) *backend {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	ops := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(ops.Close)
	return &backend{
		version: version, address: strings.TrimPrefix(server.URL, "http://"), ops: strings.TrimPrefix(ops.URL, "http://"),
	}
}

// start starts a balancer whose requests have the results.
func start(t *testing.T, backends ...*backend) (b *balancer, results func() []served) {
	t.Helper()
	var mu sync.Mutex
	var list []served
	b, err := startBalancer(t.Context(), func(s served) {
		mu.Lock()
		defer mu.Unlock()
		s.took = 0
		list = append(list, s)
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close(context.Background())) })
	for _, back := range backends {
		b.add(back)
	}
	return b, func() []served {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// get sends a request on a new connection.
func get(t *testing.T, b *balancer) (status int, err error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.address+"/x", nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func TestBalancer(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
	t.Run("in turn", func(t *testing.T) {
		t.Parallel()
		b, results := start(t, newBackend(t, "old", ok), newBackend(t, "new", ok))
		for range 4 {
			status, err := get(t, b)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
		}
		versions := map[string]int{}
		for _, r := range results() {
			require.Empty(t, r.failure)
			versions[r.version]++
		}
		require.Equal(t, map[string]int{"old": 2, "new": 2}, versions)
	})
	t.Run("another one after a refused connection", func(t *testing.T) {
		t.Parallel()
		nobody, err := proctest.FreeAddress()
		require.NoError(t, err)
		refusing := newBackend(t, "old", ok)
		refusing.address = nobody
		b, results := start(t, refusing, newBackend(t, "new", ok))
		for range 2 {
			status, err := get(t, b)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
		}
		require.Equal(t, []served{{path: "/x", version: "new"}, {path: "/x", version: "new"}}, results())
	})
	for name, handle := range map[string]http.HandlerFunc{
		"503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"no answer": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"incomplete answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name+" is a failure and not repeated", func(t *testing.T) {
			t.Parallel()
			b, results := start(t, newBackend(t, "old", handle), newBackend(t, "new", handle))
			status, err := get(t, b)
			require.True(t, err != nil || status == http.StatusServiceUnavailable)
			require.Eventually(t, func() bool { return len(results()) == 1 }, time.Minute, time.Millisecond)
			require.NotEmpty(t, results()[0].failure)
			require.NotEmpty(t, results()[0].version)
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	s := &stages{}
	s.note("api", served{failure: "before the first stage"})
	s.begin("first")
	s.note("api", served{version: "old", took: time.Second})
	s.note("api", served{path: changeFeed, version: "old", took: time.Minute})
	s.begin("second")
	s.changed(2 * time.Second)
	s.note("receiver", served{version: "new", failure: "503"})
	calls := map[string]int{}
	for _, o := range operations() {
		calls[o.name] = 1
	}
	e := &env{stages: s, base: base{name: "v1"}}
	r := newReport(e, harness.Report{}, calls)
	require.Equal(t, time.Second, r.Stages[0].Slowest, "the change feed waits for changes")
	require.Equal(t, map[string]int{"api old": 2}, r.Stages[0].Requests)
	require.Equal(t, 2*time.Second, r.Stages[1].Took)
	require.Equal(t, []string{"failed request, second: receiver new: 503"}, r.Findings)
	require.ErrorIs(t, r.Failure(), harness.ErrFailed)
	var out strings.Builder
	require.NoError(t, r.Print(&out))
	require.True(t, strings.HasSuffix(out.String(), "\n1 failed requests, 0 lost, 0 duplicated, 0 wrong, 0 phantom\n"))

	delete(calls, "csv")
	common := harness.Report{}
	common.Uploads.Unknown = 3
	r = newReport(&env{stages: &stages{}}, common, calls)
	require.Equal(t, []string{"3 uploads have no conclusive answer", "no call csv succeeded"}, r.Findings)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{Full(1), Short(1)} {
		require.NoError(t, o.Validate())
		o.Drain = 0
		require.ErrorIs(t, o.Validate(), errOptions)
	}
}
