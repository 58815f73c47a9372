package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

var errDatabaseLost = errors.New("terminating connection due to administrator command at 10.1.2.3")

// hookedExport is a real export in which something happens before a row.
type hookedExport struct {
	api.Export
	before func(ctx context.Context, row int) error
}

func (h *hookedExport) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
	n := 0
	return h.Export.Each(ctx, func(row *roomsensor.ExportRow) error {
		if err := h.before(ctx, n); err != nil {
			return err
		}
		n++
		return f(row)
	})
}

// hooked is the real backend with a hook in every export.
type hooked struct {
	api.Backend
	before func(ctx context.Context, row int) error
}

func (h *hooked) OpenExport(ctx context.Context, team uuid.UUID, q roomsensor.ExportQuery) (api.Export, error) {
	export, err := h.Backend.OpenExport(ctx, team, q)
	if err != nil {
		return nil, err
	}
	return &hookedExport{export, h.before}, nil
}

func failAt(row int) func(context.Context, int) error {
	return func(_ context.Context, n int) error {
		if n == row {
			return errDatabaseLost
		}
		return nil
	}
}

// Decision 32: a failure after the first byte breaks the connection.
func TestFailureInTheMiddleBreaksTheConnection(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.1")
	f := setup(t)
	const rows = 24_000
	f.addReadings(t, deviceID, start.Add(-85*24*time.Hour), rows)
	f.replica = f.serve(t, &hooked{backend{f.store}, failAt(rows - 1)}, nil)
	for _, shape := range []string{"long", "wide"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
				name := shape + " " + coding + " " + proto
				got, body := f.raw(t, proto, "/v1/readings.csv?last=90d&shape="+shape, coding)
				require.Equal(t, http.StatusOK, got.status, name)
				text, err := expand(t, got.header.Get("Content-Encoding"), body)
				require.Error(t, err, name)
				require.LessOrEqual(t, bytes.Count(text, []byte("\n")), rows, name)
				if proto == "HTTP/1.0" && coding == "identity" {
					var network *net.OpError
					require.ErrorAs(t, err, &network, "a reset, as there is no other sign")
				}
			}
		}
	}
	require.Contains(t, f.log.String(), "administrator command", "logged whole")
}

// raw sends a request in a version of HTTP over a connection of its own.
func (f *fixture) raw(t *testing.T, proto, path, coding string) (head response, body io.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET "+path+" "+proto+"\r\nHost: x\r\nAccept-Encoding: "+coding+
		"\r\nAuthorization: Bearer "+f.key+"\r\n\r\n")
	require.NoError(t, err)
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = got.Body.Close() })
	return response{status: got.StatusCode, header: got.Header}, got.Body
}

// Before the first byte a failure is an answer like any other.
func TestFailureBeforeTheFirstByteIsAnAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	f.replica = f.serve(t, &hooked{backend{f.store}, failAt(0)}, nil)
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		got := f.get(t, "/readings.csv", header("Accept-Encoding", coding))
		got.requireError(t, roomsensor.CodeInternalError, "")
		for _, name := range []string{"Content-Encoding", "Content-Disposition", "X-Row-Count", "Vary"} {
			require.Empty(t, got.header.Get(name))
		}
		require.NotContains(t, string(got.body), "10.1.2.3")
	}
}

// A database that is lost for real, while the rows are on their way.
func TestLostDatabaseBreaksTheConnection(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.1")
	f := setup(t)
	// More than fits the buffers between the two, so that something is lost.
	for i := range 10 {
		id := number(0xde, 10+i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.addReadings(t, id, start.Add(-85*24*time.Hour), 24_000)
	}
	lose := func(ctx context.Context, row int) error {
		if row != 20_000 {
			return nil
		}
		_, err := f.sql.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE '%export%'`)
		return err
	}
	f.replica = f.serve(t, &hooked{backend{f.store}, lose}, nil)
	for _, shape := range []string{"long", "wide"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			got, body := f.raw(t, "HTTP/1.1", "/v1/readings.csv?last=90d&shape="+shape, coding)
			require.Equal(t, http.StatusOK, got.status)
			arrived, err := io.ReadAll(body)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s %s: the last chunk is not there", shape, coding)
			if coding != "identity" {
				require.Equal(t, coding, got.header.Get("Content-Encoding"))
				_, err = expand(t, coding, bytes.NewReader(arrived))
				require.Error(t, err, "%s %s: what arrived is no whole either", shape, coding)
			}
		}
	}
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv?last=1h").status, "the next export works")
}

// Decision 32: 4 exports of one key and 8 in all run at once.
func TestExportsAtOnce(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.6", "decision 32.7", "decision 34.4")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	running, finish := make(chan struct{}), make(chan struct{})
	wait := func(ctx context.Context, row int) error {
		if row > 0 {
			return nil
		}
		running <- struct{}{}
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	f.replica = f.serve(t, &hooked{backend{f.store}, wait}, nil)
	statuses := make(chan int)
	begin := func(key string) {
		go func() { statuses <- f.try(t.Context(), http.MethodGet, "/v1/readings.csv", "", withKey(key)).status }()
		<-running
	}
	for range 4 {
		begin(f.key)
	}
	refused := f.get(t, "/readings.csv")
	refused.requireError(t, roomsensor.CodeOverloaded, "")
	require.NotEmpty(t, refused.header.Get("Retry-After"))
	for range 4 {
		begin(f.readKey)
	}
	third := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	f.get(t, "/readings.csv", withKey(third)).requireError(t, roomsensor.CodeOverloaded, "")
	require.Equal(t, http.StatusOK, f.get(t, "/devices", withKey(third)).status)
	close(finish)
	for range 8 {
		require.Equal(t, http.StatusOK, <-statuses)
	}
	go func() { <-running }()
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv", withKey(third)).status, "the slots are given back")
}

// A client that goes away takes its query with it.
func TestClientGoneEndsTheQuery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	running, ended := make(chan struct{}), make(chan error, 1)
	wait := func(ctx context.Context, row int) error {
		if row == 0 {
			close(running)
			<-ctx.Done()
			ended <- ctx.Err()
		}
		return ctx.Err()
	}
	f.replica = f.serve(t, &hooked{backend{f.store}, wait}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-running; cancel() }()
	require.ErrorIs(t, f.try(ctx, http.MethodGet, "/v1/readings.csv", "", withKey(f.key)).err, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(f.log.String(), `"status":499`) }, 5*time.Second, time.Millisecond)
	require.NotContains(t, f.log.String(), `"level":"error"`)
}

// The read timeout is for the request; an export may take longer.
func TestExportOutlivesTheReadTimeout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	const readTimeout = 50 * time.Millisecond
	wait := func(ctx context.Context, row int) error {
		if row > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(4 * readTimeout):
			return nil
		}
	}
	f.replica = f.serve(t, &hooked{backend{f.store}, wait}, nil, func(s *http.Server) { s.ReadTimeout = readTimeout })
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv").status)
}
