package ingest

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/openapitest"
	"roomsensor/internal/roomsensor"
)

// Requests made from the OpenAPI document, valid and broken ones, find no
// answer that the document does not know, and no failure. An upload that the
// document takes is stored. Of the fields of one that it refuses only those of
// the form are looked at here.
func TestRequestsFromTheDocument(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, revoked := g.shelf.add(uuid.New(), true)
	_, unknown, _ := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, ofTheAPI, _ := roomsensor.GenerateKey(roomsensor.APIKey)
	maker := openapitest.Client{
		Document: openapitest.Receiver(), Keys: []string{g.key},
		BadKeys: []string{revoked, unknown, ofTheAPI, "x", ""},
		Samples: openapitest.Samples{
			"hardware_id": {"dev:1", "dev:00000000000000000009"}, "measured_at": {"2026-11-20T09:55:03Z", "2014-12-31T23:59:59Z"},
		},
	}
	requests := maker.Requests("POST /uploads")
	rapid.Check(t, func(r *rapid.T) {
		for range 5 {
			request := requests.Draw(r, "request")
			g.judge(r, request)
		}
	})
	require.NotContains(t, g.log.String(), "panic")
}

func (g *gate) judge(t *rapid.T, request *openapitest.Request) {
	made, err := request.HTTP(g.url)
	require.NoError(t, err)
	got := send(t, made.WithContext(g.ctx))
	require.Less(t, got.status, 500, "%s", request)
	faults := slices.DeleteFunc(slices.Clone(request.Faults), func(f openapitest.Fault) bool {
		// The query is not looked at.
		return f == openapitest.BadFields || f == openapitest.BadQuery || f == openapitest.BadHeader
	})
	switch {
	case len(request.Faults) == 0:
		require.Equal(t, http.StatusAccepted, got.status, "%s to %s", got.body, request)
		uploads := len(bytes.Split(bytes.TrimSpace(request.Body), []byte("\n")))
		require.JSONEq(t, fmt.Sprintf(`{"stored":%d}`, uploads), got.body)
	case len(faults) > 0:
		require.GreaterOrEqual(t, got.status, 400, "%s", request)
	}
}
