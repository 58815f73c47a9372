package api_test

import (
	"bufio"
	"bytes"
	"context"
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
	"roomsensor/internal/roomsensor"
)

// standIn is a backend without a database, for tests in which time stands
// still: a database has a clock of its own.
type standIn struct {
	api.Backend
	key     roomsensor.Key
	export  *endless
	devices func(ctx context.Context) error
}

func (s *standIn) APIKey(context.Context, string) (roomsensor.Key, error) { return s.key, nil }

func (s *standIn) CountRequest(context.Context, string) (roomsensor.RateVerdict, error) {
	return roomsensor.RateVerdict{Allowed: true, Remaining: 599, Reset: time.Second}, nil
}

func (s *standIn) DeviceNames(context.Context, uuid.UUID) ([]roomsensor.NamedDevice, error) {
	return []roomsensor.NamedDevice{{ID: deviceID}}, nil
}

func (s *standIn) OpenExport(context.Context, uuid.UUID, roomsensor.ExportQuery) (api.Export, error) {
	return s.export, nil
}

func (s *standIn) Devices(ctx context.Context, _ uuid.UUID, _ roomsensor.DeviceQuery) ([]roomsensor.Device, error) {
	return nil, s.devices(ctx)
}

// endless is an export of many rows; before runs ahead of each.
type endless struct {
	api.Export
	rows   int
	before func(ctx context.Context, row int) error
	ended  time.Time
}

func (e *endless) Rows() int { return e.rows }
func (e *endless) Close()    { e.ended = time.Now() }

func (e *endless) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
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

// pipes is a listener of connections within the process.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { close(p.conns); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// connect serves the backend over a pipe, sends one request and returns the
// client's end.
func connect(t *testing.T, b *standIn, path string, headers ...string) (client net.Conn, stop func()) {
	t.Helper()
	var text string
	b.key = roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead}
	b.key.ID, text, b.key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	handler, err := api.New(api.Config{CursorSecret: make([]byte, cursor.SecretBytes), Docs: docsStub}, b)
	require.NoError(t, err)
	server := api.NewServer("", handler, zerolog.Nop())
	listener := pipes{make(chan net.Conn)}
	served := make(chan error)
	go func() { served <- server.Serve(api.Paced(listener)) }()
	client, end := net.Pipe()
	listener.conns <- end
	_, err = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+text+"\r\n"+
		strings.Join(append(headers, "\r\n"), "\r\n"))
	require.NoError(t, err)
	return client, func() {
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}
}

func TestStalledClientEndsItsExport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &standIn{export: &endless{rows: 100_000}}
		client, stop := connect(t, b, "/v1/readings.csv?last=90d")
		defer stop()
		began := time.Now()
		_, err := io.CopyN(io.Discard, client, 100_000)
		require.NoError(t, err)
		<-time.After(time.Minute) // The client reads no more; the clock is the bubble's.
		synctest.Wait()
		require.Equal(t, 33*time.Second, b.export.ended.Sub(began)) // It was looked every 3 s.
	})
}

// A line that is slow but moves is not cut off, however long it takes.
func TestSlowClientGetsItsExport(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		synctest.Test(t, func(t *testing.T) {
			b := &standIn{export: &endless{rows: 100_000}}
			client, stop := connect(t, b, "/v1/readings.csv?last=90d", "Accept-Encoding: "+coding)
			defer stop()
			began := time.Now()
			got, err := http.ReadResponse(bufio.NewReader(slow{client}), nil)
			require.NoError(t, err)
			text, err := expand(t, got.Header.Get("Content-Encoding"), got.Body)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.Equal(t, 100_001, bytes.Count(text, []byte("\n")))
			require.Greater(t, time.Since(began), time.Minute)
		})
	}
}

// slow is a line of 1 KB a second.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	<-time.After(time.Second) // Of the bubble.
	return s.Reader.Read(p[:min(len(p), 1<<10)])
}

func TestStalledDatabaseEndsAnExport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stall := func(ctx context.Context, row int) error {
			if row < 10_000 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		b := &standIn{export: &endless{rows: 20_000, before: stall}}
		client, stop := connect(t, b, "/v1/readings.csv?last=90d")
		defer stop()
		began := time.Now()
		got, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		_, err = io.ReadAll(got.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorIs(t, got.Body.Close(), io.ErrUnexpectedEOF)
		require.Equal(t, 30*time.Second, b.export.ended.Sub(began))
	})
}

// Every request has a deadline, and what it runs into is overloaded.
func TestDeadlineIsOverloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &standIn{devices: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
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
}
