package receiver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/openapitest"
)

// everyCode returns one response with each error code of the receiver.
func (g *testServer) everyCode(t *testing.T) map[roomsensor.Code]answer {
	t.Helper()
	_, revoked := g.keys.add(g.team, true)
	_, expired := g.keys.addExpired(g.team)
	with := func(key string) answer {
		return g.do(t, http.MethodPost, "/uploads", strings.NewReader(small), "Authorization", "Bearer "+key)
	}
	answers := map[roomsensor.Code]answer{
		roomsensor.CodeInsufficientScope: g.do(t, http.MethodPost, "/sources/"+uuid.NewString(), strings.NewReader(small), "Authorization", "Bearer "+g.key),
		roomsensor.CodeValidationFailed:  g.post(t, "{"),
		roomsensor.CodeRequestTooLarge:   g.post(t, strings.Repeat(" ", MaxBody+1)),
		roomsensor.CodeNotFound:          g.do(t, http.MethodPost, "/upload", nil),
		roomsensor.CodeMethodNotAllowed:  g.do(t, http.MethodGet, "/uploads", nil),
		roomsensor.CodeIngestKeyMissing:  g.do(t, http.MethodPost, "/uploads", strings.NewReader(small)),
		roomsensor.CodeIngestKeyInvalid:  with(g.key + "x"),
		roomsensor.CodeIngestKeyRevoked:  with(revoked),
		roomsensor.CodeIngestKeyExpired:  with(expired),
		roomsensor.CodeInternalError:     g.withoutQueue(t).post(t, small),
	}
	g.receiver.Database = secretDatabase{}
	sealer, err := cursor.NewSealer(make([]byte, cursor.SecretBytes))
	require.NoError(t, err)
	for code, query := range map[roomsensor.Code]string{
		roomsensor.CodeTimeRangeInvalid: "since=now",
		roomsensor.CodeCursorInvalid:    "cursor=x",
		roomsensor.CodeCursorTeamMismatch: "cursor=" + sealer.Seal(&cursor.State{
			Endpoint: cursor.Rejects, KeyID: "another", IssuedAt: time.Now(), Limit: 1,
		}),
	} {
		answers[code] = g.do(t, http.MethodGet, "/rejects?"+query, nil, "Authorization", "Bearer "+g.key)
	}
	unlimited := g.receiver.rates
	g.receiver.rates = frozenRates(1, 1)
	for range burstSeconds + 1 {
		answers[roomsensor.CodeRateLimitExceeded] = g.post(t, "{")
	}
	g.receiver.rates = unlimited
	g.server.Shutdown()
	answers[roomsensor.CodeOverloaded] = g.post(t, small)
	return answers
}

// secretDatabase has the secret of cursors only.
type secretDatabase struct{ Database }

func (secretDatabase) ReceiverCursorSecret(context.Context) ([]byte, error) {
	return make([]byte, cursor.SecretBytes), nil
}

// withoutQueue returns a receiver that panics at every upload.
func (g *testServer) withoutQueue(t *testing.T) *testServer {
	t.Helper()
	server := httptest.NewServer(New(Config{
		Keys: g.keys, DocsURL: "https://sensors.example/docs", Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	}))
	t.Cleanup(server.Close)
	failing := *g
	failing.url = server.URL
	return &failing
}

// Every error code in the receiver's OpenAPI document can occur with its status.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	g := newTestServer(t)
	answers := g.everyCode(t)
	require.Len(t, openapitest.Receiver().Codes(), len(answers))
	for _, code := range openapitest.Receiver().Codes() {
		info := roomsensor.Code(code).Info()
		got := answers[info.Code]
		got.requireCode(t, info.Status, info.Code)
		require.NotEmpty(t, got.failed.Error.Message)
		waits := info.Code == roomsensor.CodeOverloaded || info.Code == roomsensor.CodeRateLimitExceeded
		require.Equal(t, waits, got.header.Get("Retry-After") != "", code)
	}
}
