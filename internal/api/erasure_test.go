package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/people"
)

// TestErasure checks that clients see an erasure at once: in /assignments, in the device, and in the response that is
// stored for an Idempotency-Key. The log never has a label.
func TestErasure(t *testing.T) {
	t.Parallel()
	const label, ref = "Zoë Kowalska", "crm-4711"
	f := setup(t)
	f.exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at) VALUES ($1, 'athlete', $2, $3, $4)`,
		deviceID, label, ref, start.Add(-day))
	const body = `{"display_name":"Hall"}`
	first := f.patchOnce(t, deviceID.String(), "key", body)
	first.requireReplayed(t, false)
	require.Contains(t, string(first.body), label)
	list := f.get(t, assignmentsPath)
	require.Contains(t, string(list.body), ref)

	done, err := f.store.EraseSubject(t.Context(), teamID, roomsensor.Subject{ExternalRef: new(ref)}, people.SubjectErasure{})
	require.NoError(t, err)
	replay := f.patchOnce(t, deviceID.String(), "key", body)
	replay.requireReplayed(t, true)
	after := f.get(t, assignmentsPath)
	require.NotEqual(t, list.header.Get("Etag"), after.header.Get("Etag"))
	for _, r := range []response{replay, after, f.get(t, devicePath), f.get(t, "/devices"), f.get(t, "/devices/current")} {
		r.requireOK(t)
		require.Contains(t, string(r.body), `"label":"`+done.Name()+`"`)
		require.NotContains(t, string(r.body), label)
		require.NotContains(t, string(r.body), ref)
	}
	require.NotContains(t, f.log.String(), "Kowalska")
	require.NotContains(t, f.log.String(), ref)
}
