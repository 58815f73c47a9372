package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// holdLast holds an export up before a row, until it is released.
func holdLast(row int, release <-chan struct{}) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		if n < row {
			return nil
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
}

// Rows are on their way before the last of them is read.
func TestExportIsStreamed(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, GET /readings.csv")
	f := setup(t)
	const rows = 24_000
	f.addReadings(t, deviceID, start.Add(-85*24*time.Hour), rows)
	for _, shape := range []string{"long", "wide"} {
		release := make(chan struct{})
		f.replica = f.serve(t, &hooked{backend{f.store}, holdLast(rows-1, release)}, nil)
		head, body := f.raw(t, "HTTP/1.1", "/v1/readings.csv?last=90d&shape="+shape, "identity")
		require.Equal(t, http.StatusOK, head.status)
		require.Empty(t, head.header.Get("Content-Length"))
		first := make([]byte, 100<<10)
		n, err := body.Read(first)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(first[:n]), "bucket_at,"))
		close(release)
		text, err := expand(t, "", body)
		require.NoError(t, err)
		require.Equal(t, rows+1, strings.Count(string(first[:n])+string(text), "\n"))
	}
}
