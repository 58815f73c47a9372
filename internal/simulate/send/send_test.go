package send_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/simulate"
	"roomsensor/internal/simulate/send"
	"roomsensor/test/natstest"
)

func options(devices int, history time.Duration) send.Options {
	return send.Options{
		Fleet:   simulate.Fleet{Seed: 3, Devices: devices, FirstHardwareID: "dev:500"},
		Mode:    simulate.Backfill,
		History: history,
		Until:   time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC),
	}
}

// printed returns the output of a run with a line sink.
func printed(t *testing.T, o send.Options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, send.Run(t.Context(), o, send.NewLineSink(&out), io.Discard))
	return out.String()
}

func TestRunDeterministic(t *testing.T) {
	t.Parallel()
	o := options(3, 48*time.Hour)
	first := printed(t, o)
	require.Equal(t, 3*2, strings.Count(first, "\n"))
	require.Equal(t, first, printed(t, o))
	o.Rate = 1000 // The rate does not change the bytes.
	require.Equal(t, first, printed(t, o))
	o.Fleet.Seed++
	require.NotEqual(t, first, printed(t, o))
}

func TestRunProgress(t *testing.T) {
	t.Parallel()
	o := options(2, 24*time.Hour)
	o.Rate = 1 // Of two uploads, the second comes after a second.
	var progress bytes.Buffer
	require.NoError(t, send.Run(t.Context(), o, send.NewLineSink(io.Discard), &progress))
	require.Regexp(t, `simulate: 2 uploads with \d+ readings \(\d+ % of the history\), \d+ readings/s\n`, progress.String())
	require.Regexp(t, `simulate: sent 2 uploads with \d+ readings in [1-9]\d*(\.\d+)?s\n`, progress.String())
}

func TestRunDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // On a busy machine, 320 ms may be too short for one line.
		o := options(2, 90*24*time.Hour)
		o.Rate, o.Duration = 20, 320*time.Millisecond
		require.Equal(t, 7, strings.Count(printed(t, o), "\n")) // At 0, 50, ..., 300 ms.
	})
}

// An interrupt leaves a history incomplete, which is a failure; live mode has no other end.
func TestRunInterrupt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode simulate.Mode
		want string
	}{
		{simulate.Backfill, "The history is not complete."},
		{simulate.Live, ""},
	} {
		o := options(2, 0)
		o.Mode, o.Rate = test.mode, 1000
		if test.mode != simulate.Live {
			o.History = 365 * 24 * time.Hour
		}
		ctx, interrupt := context.WithCancel(t.Context())
		sink := &interruptingSink{after: 5, interrupt: interrupt}
		err := send.Run(ctx, o, sink, io.Discard)
		if test.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.want)
		}
		require.Equal(t, sink.sent, sink.flushed, "all sent uploads are flushed")
	}
}

// interruptingSink interrupts the run after a number of uploads.
type interruptingSink struct {
	after, sent, flushed int
	interrupt            func()
}

func (s *interruptingSink) Send(context.Context, *simulate.Upload) error {
	s.sent++
	if s.sent == s.after {
		s.interrupt()
	}
	return nil
}

func (s *interruptingSink) Flush(ctx context.Context) error {
	s.flushed = s.sent
	return ctx.Err()
}

func TestQueueSink(t *testing.T) {
	t.Parallel()
	server := natstest.New(t)
	cfg := config.Queue{NATSURL: config.Secret(server.URL)}
	stream := config.Defaults[config.Stream]()
	stream.StreamMaxBytes = 64 * config.MiB
	sink, shut, err := send.OpenQueueSink(t.Context(), cfg, stream)
	require.NoError(t, err)
	defer shut()
	o := options(600, time.Hour) // More than one batch.
	require.NoError(t, send.Run(t.Context(), o, sink, io.Discard))

	replay, err := admin.ReplayStream(t.Context(), cfg, stream, nil)
	require.NoError(t, err)
	require.Equal(t, strings.Count(printed(t, o), "\n"), int(replay.Waiting))
}

// receiver starts a server that answers uploads and returns its URL.
func receiver(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func receiverSink(t *testing.T, url string) send.Sink {
	t.Helper()
	to, err := client.NewReceiver(url, "rsi_a_b")
	require.NoError(t, err)
	return send.NewReceiverSink(to)
}

func TestReceiverSinkRetries(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	var got atomic.Value
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/uploads" || r.Header.Get("Authorization") != "Bearer rsi_a_b" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if attempts.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got.Store(string(body))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"stored":2,"readings":576,"ignored_fields":["co2","voc"]}`)
	})
	o := options(2, 24*time.Hour)
	var progress strings.Builder
	require.NoError(t, send.Run(t.Context(), o, receiverSink(t, url), &progress))
	require.Contains(t, progress.String(),
		"simulate: the receiver confirmed 2 uploads with 576 readings, and ignored the fields co2, voc\n")
	require.Equal(t, int32(2), attempts.Load())
	require.Equal(t, printed(t, o), got.Load())
}

func TestReceiverSinkErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{
			401, `{"error":{"code":"ingest_key_revoked","message":"This upload credential was revoked. Use another one."}}`,
			"The receiver refused the uploads: ingest_key_revoked: This upload credential was revoked.",
		},
		{404, `<html>`, "that --to is its URL: 404: Not Found"},
		{202, `<html>`, "that --to is its URL: decoding the response to POST /uploads"},
	} {
		url := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		err := send.Run(t.Context(), options(1, time.Hour), receiverSink(t, url), io.Discard)
		require.ErrorContains(t, err, test.want)
	}
}

// Requests are far smaller than the maximum of a receiver.
func TestReceiverSinkRequestSize(t *testing.T) {
	t.Parallel()
	var lines atomic.Int64
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 4<<20 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		uploads := bytes.Count(body, []byte("\n"))
		lines.Add(int64(uploads))
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"stored":%d,"readings":%d,"ignored_fields":["x"]}`, uploads, 2*uploads)
	})
	var progress strings.Builder
	require.NoError(t, send.Run(t.Context(), options(250, 12*time.Hour), receiverSink(t, url), &progress))
	require.Contains(t, progress.String(), "confirmed 250 uploads with 500 readings, and ignored the fields x\n")
	require.Equal(t, int64(250), lines.Load())
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLineSinkError(t *testing.T) {
	t.Parallel()
	err := send.Run(t.Context(), options(1, time.Hour), send.NewLineSink(brokenWriter{}), io.Discard)
	require.ErrorContains(t, err, "printing uploads: broken pipe")
}
