package receiver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/openapitest"
)

// ask calls the handler with a body, without a network.
func (g *testServer) ask(t *testing.T, coding string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/uploads", bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+g.key)
	if coding != "" {
		request.Header.Set("Content-Encoding", coding)
	}
	w := httptest.NewRecorder()
	g.receiver.ServeHTTP(w, request)
	require.NoError(t, openapitest.Receiver().Check(&openapitest.Answer{
		Request: request, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes(),
	}))
	if w.Code == http.StatusServiceUnavailable {
		g.purge(t) // The stream is full.
		return g.ask(t, coding, body)
	}
	require.Less(t, w.Code, 500, "%s", g.log)
	g.log.Reset()
	return w
}

func (g *testServer) purge(t *testing.T) {
	t.Helper()
	stream, err := g.js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	require.NotZero(t, stream.CachedInfo().State.Msgs, "%s", g.log)
	require.NoError(t, stream.Purge(t.Context()))
}

// FuzzPackedUpload sends bodies that may be compressed.
func FuzzPackedUpload(f *testing.F) {
	g := newTestServer(f)
	for _, coding := range []string{"gzip", "zstd", "x-gzip", "GZIP", "br", "gzip, zstd", ""} {
		f.Add(coding, []byte(small))
	}
	f.Add("gzip", []byte(gzipped(f, small)))
	f.Add("zstd", []byte(zstandard(f, small+"\n"+second)))
	f.Add("gzip", []byte(gzipped(f, small)+gzipped(f, small)))
	f.Add("zstd", []byte(zstandard(f, strings.Repeat(" ", 1<<20)))) // A small decompression bomb.
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		w := g.ask(t, coding, body)
		require.Zero(t, g.receiver.memory.Used(), "all memory is released")
		_, err := io.Copy(io.Discard, w.Body)
		require.NoError(t, err)
	})
}
