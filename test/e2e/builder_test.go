package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// askReceiver sends a request to the receiver with the upload credential of the team.
func (e *env) askReceiver(status int, method, path, body string) (object map[string]any) {
	e.t.Helper()
	r := e.send(e.receiver, method, path, e.ingestKey, body)
	require.NoError(e.t, r.err)
	require.Equal(e.t, status, r.status, r.body)
	require.NoError(e.t, json.Unmarshal([]byte(r.body), &object))
	return object
}

// TestMisspelledMetric is the story of a device that sends co2 instead of co2_ppm: its builder can find out before and
// after, no other team sees it, and the last good reading stays the newest one.
func TestMisspelledMetric(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 45 a", "decision 46 a", "decision 46 b", "A8.1", "A8.2", "A8.3")
	e := newService(t)
	e.receiver = e.start("ingest", "--no-worker")
	other := e.newTeam(t)
	unit, device := e.newUnit()
	upload := func(readings string) string { return `{"hardware_id":"` + unit + `","readings":[` + readings + `]}` }
	good, misspelled := upload(reading("08:00:00", `"co2_ppm":640`)), upload(reading("08:05:00", `"co2":641`))

	report := e.askReceiver(http.StatusOK, http.MethodPost, "/uploads?dry_run=true", misspelled)
	predicted := report["rejects"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"no_metric", 1.0}, []any{predicted["reason"], predicted["line"]})
	require.Empty(t, e.served(device))

	stored := map[string]any{"stored": 1.0, "readings": 1.0, "ignored_fields": []any{}}
	require.Equal(t, stored, e.askReceiver(http.StatusAccepted, http.MethodPost, "/uploads", good))
	stored["ignored_fields"] = []any{"co2"}
	require.Equal(t, stored, e.askReceiver(http.StatusAccepted, http.MethodPost, "/uploads", misspelled))
	e.publish(unit, misspelled) // Without a credential.
	e.settle()
	require.Equal(t, []string{"08:00 640 - - - -"}, e.served(device))
	require.Equal(t, 640.0, *e.api().current()[0].Latest.CO2PPM)

	list := func(e *env, query string) []any {
		return e.askReceiver(http.StatusOK, http.MethodGet, "/rejects"+query, "")["data"].([]any)
	}
	rejects := list(e.env, "")
	require.Len(t, rejects, 1, "the one without a credential belongs to no team")
	reject := rejects[0].(map[string]any)
	require.Equal(t, []any{unit, "no_metric", predicted["detail"], nil},
		[]any{reject["hardware_id"], reject["reason"], reject["detail"], reject["replayed_at"]})
	require.Empty(t, list(other, ""))
	require.Empty(t, list(other, "?hardware_id="+unit))
	e.command("rejects", "replay", reject["id"].(string))
	require.NotNil(t, list(e.env, "?reason=no_metric")[0].(map[string]any)["replayed_at"])
	require.Equal(t, []string{"08:00 640 - - - -"}, e.served(device))
}
