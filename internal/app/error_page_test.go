package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
)

// Whoever follows the address in an error finds what to do.
func TestDocURLLeadsToAPage(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 7, error.doc_url")
	r := startAPI(t, apiConfig(dbtest.New(t).URL))
	r.address("ops")
	api := r.address("api")
	r.awaitReady()
	_, body := get(t, api+"/v1/team")
	var envelope struct {
		Error struct {
			DocURL string `json:"doc_url"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &envelope))
	base, found := strings.CutSuffix(envelope.Error.DocURL, "/errors/api_key_missing")
	require.True(t, found, body)
	for _, info := range roomsensor.Codes {
		status, page := get(t, base+"/errors/"+string(info.Code))
		require.Equal(t, 200, status, info.Code)
		require.Contains(t, page, string(info.Code))
		require.Contains(t, page, info.Fix[:10])
	}
	status, _ := get(t, base+"/errors/none")
	require.Equal(t, 404, status)
	require.NoError(t, r.end())
}
