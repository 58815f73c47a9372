package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"/v1/team": http.StatusTeapot}[r.URL.Path])
	}))
	defer api.Close()
	out, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-api", api.URL}, printed, io.Discard)
		_ = printed.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSuffix(line, "\n")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/docs$`, url)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, url string) (status int, body string) {
		request, err := http.NewRequestWithContext(ctx, method, url, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, string(text)
	}
	for _, path := range []string{"", "/guides/csv", "/openapi.json"} {
		status, _ := ask(http.MethodGet, url+path)
		require.Equal(t, http.StatusOK, status, path)
	}
	_, body := ask(http.MethodGet, url+"/errors/overloaded")
	require.Contains(t, body, url+"/errors/overloaded")
	_, body = ask(http.MethodGet, url+"/openapi.yaml")
	require.Contains(t, body, "- url: ../v1\n")
	status, _ := ask(http.MethodGet, strings.TrimSuffix(url, "/docs")+"/v1/team")
	require.Equal(t, http.StatusTeapot, status, "the response of the API")
	status, _ = ask(http.MethodPost, url)
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = ask(http.MethodGet, url+"/none")
	require.Equal(t, http.StatusNotFound, status)

	stop()
	require.NoError(t, <-ended)
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), []string{"-addr", "127.0.0.1:none"}, io.Discard, io.Discard), "listening")
	require.Error(t, run(t.Context(), []string{"-port", "1"}, io.Discard, io.Discard))
}
