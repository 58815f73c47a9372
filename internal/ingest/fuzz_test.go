package ingest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// ask gives the receiver a body, without a network between.
func (g *gate) ask(t *testing.T, coding string, body []byte) *httptest.ResponseRecorder {
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
		g.purge(t) // It is full.
		return g.ask(t, coding, body)
	}
	require.Less(t, w.Code, 500, "%s", g.log)
	g.log.Reset()
	return w
}

func (g *gate) purge(t *testing.T) {
	t.Helper()
	stream, err := g.js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	require.NotZero(t, stream.CachedInfo().State.Msgs, "%s", g.log)
	require.NoError(t, stream.Purge(t.Context()))
}

// FuzzUpload feeds bodies to the receiver over a real queue, and what it takes
// to the tables: the database refuses nothing of it.
func FuzzUpload(f *testing.F) {
	g, tables := newGate(f), newTables(f)
	unit := tables.fleet.first
	for _, body := range []string{
		small, small + "\r\n\n" + second, "{\n\"hardware_id\":\"dev:1\",\n\"readings\":[]}\n{", `{"readings":[{"a":1,"a":2}],"hardware_id":"dev:1"}`,
		`{"hardware_id":"dev:1","sent_at":"x","firmware_version":"\u0000","signal":{"rssi_dbm":-9999999999,"bars":1e9},"readings":[{"measured_at":"2026-11-20T09:55:03.9999999Z","co2_ppm":1e400,"temp_c":-0.0,"lux":1e-60,"spl_db":"x\u0000"}]}`,
		`{"hardware\u005fid":"dev:1","readings":[null,[{}],{"measured_at":"2026-11-20T09:55:03Z"},{"measured_at":"2026-11-20T09:59:59Z","co2_ppm":3.4028236e38}]}`,
		`{"hardware_id":"dev:00000000000000000001","readings":[],"x":"` + strings.Repeat("é", 300) + `"}`, "\ufeff" + small, "\xff",
	} {
		f.Add([]byte(strings.ReplaceAll(body, "dev:1", unit)))
	}
	l := tables.lander()
	arrival := roomsensor.Arrival{At: time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)}
	f.Fuzz(func(t *testing.T, body []byte) {
		if g.ask(t, "", body).Code != http.StatusAccepted {
			return
		}
		messages, refusal := split(body)
		require.Nil(t, refusal)
		deliveries := make([]*delivery, len(messages))
		for i, m := range messages {
			arrival.Sequence++
			deliveries[i] = judged(arrival, m.HardwareID, m.Text)
		}
		outcomes, err := l.land(t.Context(), deliveries)
		require.NoError(t, err)
		for _, o := range outcomes {
			require.True(t, o.stored)
			for _, reject := range o.rejects {
				require.NotEqual(t, roomsensor.ReasonNotStorable, reject.Reason, reject.Detail)
			}
		}
	})
}

// FuzzPackedUpload feeds what is, or is not, packed.
func FuzzPackedUpload(f *testing.F) {
	g := newGate(f)
	for _, coding := range []string{"gzip", "zstd", "x-gzip", "GZIP", "br", "gzip, zstd", ""} {
		f.Add(coding, []byte(small))
	}
	f.Add("gzip", []byte(gzipped(f, small)))
	f.Add("zstd", []byte(zstandard(f, small+"\n"+second)))
	f.Add("gzip", []byte(gzipped(f, small)+gzipped(f, small)))
	f.Add("zstd", []byte(zstandard(f, strings.Repeat(" ", 1<<20)))) // A bomb, of little.
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		w := g.ask(t, coding, body)
		require.Zero(t, g.receiver.memory.taken.Load(), "memory is given back")
		_, err := io.Copy(io.Discard, w.Body)
		require.NoError(t, err)
	})
}
