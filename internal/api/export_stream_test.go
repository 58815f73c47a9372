package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/cursor"
	"roomsensor/internal/export"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// hookedBackend runs before ahead of every row of every export.
type hookedBackend struct {
	api.Backend
	before func(ctx context.Context, row int) error
}

func (h *hookedBackend) OpenExport(ctx context.Context, team uuid.UUID, q roomsensor.ExportQuery) (export.Readings, error) {
	export, err := h.Backend.OpenExport(ctx, team, q)
	if err != nil {
		return nil, err
	}
	return &hookedExport{export, h.before}, nil
}

type hookedExport struct {
	export.Readings
	before func(ctx context.Context, row int) error
}

func (h *hookedExport) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
	n := 0
	return h.Readings.Each(ctx, func(row *roomsensor.ExportRow) error {
		if err := h.before(ctx, n); err != nil {
			return err
		}
		n++
		return f(row)
	})
}

// serveHooked starts a replica with a hook in every export.
func (f *fixture) serveHooked(t *testing.T, before func(ctx context.Context, row int) error) *replica {
	t.Helper()
	return f.serve(t, &hookedBackend{f.store, before}, nil)
}

func failAt(row int) func(context.Context, int) error {
	return func(_ context.Context, n int) error {
		if n == row {
			return errDatabaseLost
		}
		return nil
	}
}

// getRaw sends a request in a version of HTTP over its own connection, and returns the body unread.
func (r *replica) getRaw(t *testing.T, proto, path, coding, key string) (head response, body io.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET /v1"+path+" "+proto+"\r\nHost: x\r\nAccept-Encoding: "+coding+"\r\nAuthorization: Bearer "+key+"\r\n\r\n")
	require.NoError(t, err)
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = got.Body.Close() })
	require.Equal(t, http.StatusOK, got.StatusCode)
	return response{status: got.StatusCode, header: got.Header}, got.Body
}

// A failure after the first byte breaks the connection, compressed or not (decision 32 a).
func TestExportFailure(t *testing.T) {
	t.Parallel()
	f := setup(t)
	// More than fits into the buffers between the database and the client.
	for i := range 10 {
		id := testID(0xde, 10+i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.addReadings(t, id, start.Add(-85*day), 24_000)
	}
	t.Run("after the first byte", f.testFailureAfterFirstByte)
	t.Run("before the first byte", f.testFailureBeforeFirstByte)
	t.Run("rows are sent before the last one is read", f.testStreaming)
	t.Run("of a Parquet file", f.testParquetFailure)
}

func (f *fixture) testFailureAfterFirstByte(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 a")
	r := f.serveHooked(t, failAt(23_999))
	path := "/readings.csv?last=90d&devices=" + testID(0xde, 10).String() + "&shape="
	for _, shape := range []string{"long", "wide"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
				name := shape + " " + coding + " " + proto
				got, body := r.getRaw(t, proto, path+shape, coding, f.key)
				text, err := expand(t, got.header.Get("Content-Encoding"), body)
				require.Error(t, err, name)
				require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 24_000, name)
				if proto == "HTTP/1.0" && coding == "identity" {
					var network *net.OpError
					require.ErrorAs(t, err, &network, "a reset is the only sign")
				}
			}
		}
	}
	require.Contains(t, r.log.String(), "administrator command", "the cause is logged")
}

// testParquetFailure fails an export in its fourth row group.
func (f *fixture) testParquetFailure(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A7.1", "A0.2")
	r := f.serveHooked(t, failAt(235_000))
	for _, proto := range []string{"HTTP/1.1", "HTTP/1.0"} {
		got, body := r.getRaw(t, proto, "/readings.parquet?last=90d", "gzip, zstd", f.key)
		require.Equal(t, "240000", got.header.Get("X-Row-Count"))
		part, err := io.ReadAll(body)
		require.Error(t, err, proto)
		require.True(t, bytes.HasPrefix(part, []byte("PAR1")), "row groups were sent")
		require.False(t, bytes.HasSuffix(part, []byte("PAR1")), "there is no footer")
	}
	got := f.serveHooked(t, failAt(1_000)).get(t, "/readings.parquet?last=90d", f.key)
	got.requireError(t, roomsensor.CodeInternalError, "")
	for _, name := range []string{"Accept-Ranges", "Content-Disposition", "X-Row-Count"} {
		require.Empty(t, got.header.Get(name))
	}
}

func (f *fixture) testFailureBeforeFirstByte(t *testing.T) {
	t.Parallel()
	r := f.serveHooked(t, failAt(0))
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		got := r.do(t, http.MethodGet, "/v1/readings.csv?last=90d&devices="+testID(0xde, 10).String(), "", withKey(f.key),
			header("Accept-Encoding", coding))
		got.requireError(t, roomsensor.CodeInternalError, "")
		for _, name := range []string{"Content-Encoding", "Content-Disposition", "X-Row-Count", "Vary"} {
			require.Empty(t, got.header.Get(name))
		}
		requireNoInternals(t, got)
	}
}

func (f *fixture) testStreaming(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 4, readings.csv, stream")
	for _, shape := range []string{"long", "wide"} {
		release := make(chan struct{})
		r := f.serveHooked(t, func(ctx context.Context, row int) error {
			if row < 23_999 {
				return nil
			}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		head, body := r.getRaw(t, "HTTP/1.1", "/readings.csv?last=90d&devices="+testID(0xde, 10).String()+"&shape="+shape, "identity", f.key)
		require.Empty(t, head.header.Get("Content-Length"))
		first := make([]byte, 100<<10)
		n, err := body.Read(first)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(first[:n]), "bucket_at,"))
		close(release)
		rest, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, 24_001, strings.Count(string(first[:n])+string(rest), "\n"))
	}
}

// Four exports of one key and eight in all run at the same time (decision 32 f and g).
func TestConcurrentExports(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32 f", "decision 32 g", "decision 34 d", "A0.2")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	running, finish := make(chan struct{}), make(chan struct{})
	f.replica = f.serveHooked(t, func(ctx context.Context, row int) error {
		if row > 0 {
			return nil
		}
		running <- struct{}{}
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	statuses := make(chan int)
	begin := func(path, key string) {
		go func() { statuses <- f.try(t.Context(), http.MethodGet, path, "", withKey(key)).status }()
		<-running
	}
	for range 2 { // All exports share the limits (A0.2).
		begin("/v1/readings.csv", f.key)
		begin("/v1/readings.parquet", f.key)
	}
	refused := f.get(t, "/readings.csv?devices="+testID(0xff, 1).String()) // Refused before any query.
	refused.requireError(t, roomsensor.CodeOverloaded, "")
	f.get(t, "/readings.parquet").requireError(t, roomsensor.CodeOverloaded, "")
	require.NotEmpty(t, refused.header.Get("Retry-After"))
	for range 4 {
		begin("/v1/readings.csv", f.readKey)
	}
	third := f.newKey(t, roomsensor.ScopeRead)
	f.get(t, "/readings.csv", withKey(third)).requireError(t, roomsensor.CodeOverloaded, "")
	f.get(t, "/devices", withKey(third)).requireOK(t)
	close(finish)
	for range 8 {
		require.Equal(t, http.StatusOK, <-statuses)
	}
	go func() { <-running }()
	f.get(t, "/readings.csv", withKey(third)).requireOK(t)
}

// The query of an export ends when its client disconnects.
func TestExportOfADisconnectedClient(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 10)
	running, ended := make(chan struct{}), make(chan error, 1)
	f.replica = f.serveHooked(t, func(ctx context.Context, row int) error {
		if row == 0 {
			close(running)
			<-ctx.Done()
			ended <- ctx.Err()
		}
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-running; cancel() }()
	require.ErrorIs(t, f.try(ctx, http.MethodGet, "/v1/readings.csv", "", withKey(f.key)).err, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return strings.Contains(f.log.String(), `"status":499`) }, patience, time.Millisecond)
	require.NotContains(t, f.log.String(), `"level":"error"`)
}

// fakeBackend is a backend without a database, whose clock synctest could not control.
type fakeBackend struct {
	api.Backend
	key     roomsensor.Key
	export  *fakeExport
	opening func() // nil, or runs ahead of an export
	devices func(ctx context.Context, do func(*roomsensor.Device)) error
	log     bytes.Buffer
}

func (b *fakeBackend) APIKeysByID(context.Context, []string) ([]roomsensor.Key, error) {
	return []roomsensor.Key{b.key}, nil
}

func (b *fakeBackend) CountRequest(context.Context, string) (roomsensor.RateVerdict, error) {
	return roomsensor.RateVerdict{Allowed: true, Remaining: 599, Reset: time.Second}, nil
}

func (b *fakeBackend) DeviceNames(context.Context, uuid.UUID) ([]roomsensor.NamedDevice, error) {
	return []roomsensor.NamedDevice{{ID: deviceID}}, nil
}

func (b *fakeBackend) OpenExport(context.Context, uuid.UUID, roomsensor.ExportQuery) (export.Readings, error) {
	if b.opening != nil {
		b.opening()
	}
	return b.export, nil
}

func (b *fakeBackend) EachDevice(ctx context.Context, _ uuid.UUID, _ roomsensor.DeviceQuery, do func(*roomsensor.Device)) error {
	return b.devices(ctx, do)
}

// newKey creates the key that the backend knows and returns its text.
func (b *fakeBackend) newKey() (text string) {
	b.key = roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead}
	b.key.ID, text, b.key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	return text
}

func newHandler(t *testing.T, b api.Backend) http.Handler {
	t.Helper()
	log := zerolog.Nop()
	if fake, ok := b.(*fakeBackend); ok {
		log = zerolog.New(&fake.log)
	}
	handler, err := api.New(api.Config{CursorSecret: make([]byte, cursor.SecretBytes), Docs: docsStub, Log: log}, b)
	require.NoError(t, err)
	return handler
}

// fakeExport is an export of n rows; before runs ahead of each.
type fakeExport struct {
	export.Readings
	rows   int
	before func(ctx context.Context, row int) error
	ended  time.Time
}

func (e *fakeExport) Rows() int { return e.rows }
func (e *fakeExport) Close()    { e.ended = time.Now() }

func (e *fakeExport) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
	for i := range e.rows {
		if e.before != nil {
			if err := e.before(ctx, i); err != nil {
				return err
			}
		}
		row := roomsensor.ExportRow{DeviceID: deviceID, BucketAt: start.Add(time.Duration(i) * 5 * time.Minute)}
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// pipeListener is a listener of connections within the process.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l pipeListener) Close() error   { close(l.conns); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// connect serves a backend over a pipe, sends one request and returns the client's end.
func connect(t *testing.T, b *fakeBackend, path string, headers ...string) (client net.Conn, stop func()) {
	t.Helper()
	server := api.NewServer(newHandler(t, b), zerolog.Nop())
	listener := pipeListener{make(chan net.Conn)}
	served := make(chan error)
	go func() { served <- server.Serve(httpedge.IdleListener(listener)) }()
	client, end := net.Pipe()
	listener.conns <- end
	_, err := io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+b.newKey()+"\r\n"+
		strings.Join(append(headers, "\r\n"), "\r\n"))
	require.NoError(t, err)
	return client, func() {
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}
}

// An export whose key is revoked while its rows are counted sends none of them.
func TestExportOfARevokedKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 24 k", "decision 25 f")
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBackend{export: &fakeExport{rows: 1}}
		b.opening = func() {
			b.key.RevokedAt = new(time.Now())
			<-time.After(5 * time.Second) // The clock is the bubble's.
		}
		client, stop := connect(t, b, "/v1/readings.csv?last=90d")
		defer stop()
		got, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, http.StatusUnauthorized, got.StatusCode)
		require.Contains(t, string(body), `"code":"api_key_revoked"`)
		require.Empty(t, got.Header.Get("RateLimit-Limit"))
	})
}

// slowReader reads some bytes per second.
type slowReader struct {
	io.Reader
	perSecond int
}

func (s slowReader) Read(p []byte) (int, error) {
	<-time.After(time.Second) // The clock is the bubble's.
	return s.Reader.Read(p[:min(len(p), s.perSecond)])
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	t.Run("a client that stops reading ends its export", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := &fakeBackend{export: &fakeExport{rows: 100_000}}
			client, stop := connect(t, b, "/v1/readings.csv?last=90d")
			defer stop()
			began := time.Now()
			_, err := io.CopyN(io.Discard, client, 100_000)
			require.NoError(t, err)
			<-time.After(time.Minute) // The clock is the bubble's.
			synctest.Wait()
			require.Equal(t, 33*time.Second, b.export.ended.Sub(began)) // The check runs every 3 s.
		})
	})
	for coding, perSecond := range map[string]int{"identity": 16 << 10, "gzip": 1 << 10, "zstd": 1 << 10} {
		t.Run("a client that reads slowly gets the whole export, "+coding, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &fakeBackend{export: &fakeExport{rows: 100_000}}
				client, stop := connect(t, b, "/v1/readings.csv?last=90d", "Accept-Encoding: "+coding)
				defer stop()
				began := time.Now()
				got, err := http.ReadResponse(bufio.NewReader(slowReader{client, perSecond}), nil)
				require.NoError(t, err)
				text, err := expand(t, got.Header.Get("Content-Encoding"), got.Body)
				require.NoError(t, err)
				require.NoError(t, got.Body.Close())
				require.Equal(t, 100_001, bytes.Count(text, []byte("\n")))
				require.Greater(t, time.Since(began), time.Minute)
			})
		})
	}
	t.Run("an export may take longer than the read timeout of the server", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const took = 2 * time.Minute
			b := &fakeBackend{export: &fakeExport{rows: 1, before: func(ctx context.Context, _ int) error {
				return retry.Sleep(ctx, took)
			}}}
			client, stop := connect(t, b, "/v1/readings.csv?last=90d")
			defer stop()
			began := time.Now()
			got, err := http.ReadResponse(bufio.NewReader(client), nil)
			require.NoError(t, err)
			text, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.Equal(t, 2, bytes.Count(text, []byte("\n")))
			require.Equal(t, took, time.Since(began))
		})
	})
	t.Run("a client that takes 30 minutes ends its export", func(t *testing.T) {
		t.Parallel()
		conformance.Covers(t, "decision 32 h")
		synctest.Test(t, func(t *testing.T) {
			b := &fakeBackend{export: &fakeExport{rows: 100_000}}
			client, stop := connect(t, b, "/v1/readings.csv?last=90d")
			defer stop()
			began := time.Now()
			got, err := http.ReadResponse(bufio.NewReader(slowReader{client, 1 << 10}), nil)
			require.NoError(t, err)
			_, err = io.ReadAll(got.Body)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorIs(t, got.Body.Close(), io.ErrUnexpectedEOF)
			synctest.Wait()
			require.Equal(t, 30*time.Minute, b.export.ended.Sub(began).Truncate(time.Second))
			require.Contains(t, b.log.String(), `"error":"the client did not receive the export within 30m0s"`)
			require.Contains(t, b.log.String(), `"status":499`)
		})
	})
	for perSecond, want := range map[int]error{512: io.ErrUnexpectedEOF, 2 << 10: nil} {
		t.Run(fmt.Sprintf("a client that reads a list at %d bytes per second", perSecond), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &fakeBackend{devices: func(_ context.Context, do func(*roomsensor.Device)) error {
					do(&roomsensor.Device{Metadata: map[string]string{"k": strings.Repeat("x", 60<<10)}})
					return nil
				}}
				client, stop := connect(t, b, "/v1/devices")
				defer stop()
				began := time.Now()
				got, err := http.ReadResponse(bufio.NewReader(slowReader{client, perSecond}), nil)
				require.NoError(t, err)
				_, err = io.ReadAll(got.Body)
				require.ErrorIs(t, err, want)
				_ = got.Body.Close()
				if want != nil { // 30 s, and 1 KiB/s for 60 KiB.
					require.InDelta(t, 90, time.Since(began).Seconds(), 1)
				}
			})
		})
	}
	t.Run("a request that takes 10 seconds is overloaded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := &fakeBackend{devices: func(ctx context.Context, _ func(*roomsensor.Device)) error {
				<-ctx.Done()
				return ctx.Err()
			}}
			client, stop := connect(t, b, "/v1/devices")
			defer stop()
			began := time.Now()
			got, err := http.ReadResponse(bufio.NewReader(client), nil)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
			require.Equal(t, "5", got.Header.Get("Retry-After"))
			require.Equal(t, 10*time.Second, time.Since(began))
		})
	})
}
