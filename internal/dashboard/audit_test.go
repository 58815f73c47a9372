package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestAuditPage checks that an admin sees who changed what, and nobody else does.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addNamedDevice(t, "dev:1", "Hall <1>", nil)
	ctx := roomsensor.WithActor(t.Context(), roomsensor.Actor{Kind: roomsensor.ActorAPIKey, Name: "k1"})
	_, err := e.store.UpdateDevice(ctx, e.team, device, roomsensor.DevicePatch{
		Metadata: roomsensor.MetadataPatch{Values: map[string]*string{"floor": new("<2>")}},
	})
	require.NoError(t, err)
	path := "/teams/" + e.team.String() + "/audit"
	require.Equal(t, http.StatusForbidden, e.signIn(t, e.team, roomsensor.Editor).get(t, path).status)

	p := e.signIn(t, e.team, roomsensor.Admin)
	got := p.get(t, path+"?actor=K1")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, 1, got.find(".entries > li").Length())
	require.Contains(t, got.text, "Changed device Hall <1>")
	require.Contains(t, got.text, "API key k1")
	require.Equal(t, "Tagfloornone<2>", strings.Join(strings.Fields(got.find(".differences tbody").Text()), ""))

	require.Contains(t, p.get(t, path+"?object="+device.String()).text, "Created unit dev:1 on Hall <1>")
	require.Contains(t, p.get(t, path+"?actor=nobody").text, "No entry matches.")
	require.Contains(t, p.get(t, path+"?from=soon").text, "Enter a date, such as 2026-01-31.")
	for _, filtered := range []string{path + "?actor=", e.path("/assignments?q="), e.path("?q=")} { // ж has two bytes.
		require.NotContains(t, p.get(t, filtered+strings.Repeat("ж", 200)).text, "200 characters")
		require.Contains(t, p.get(t, filtered+strings.Repeat("ж", 201)).text, "200 characters")
	}
}

// TestAuditPagePeriod checks the days of the filter in the zone of the team, and that the pages have each entry once.
func TestAuditPagePeriod(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin'`)
	e.exec(t, `DELETE FROM audit_log`)
	e.exec(t, `INSERT INTO audit_log (at, actor_kind, actor, team_id, action, object_kind, object_id, object_name)
		SELECT timestamptz '2026-01-01 22:00Z' + n * interval '1 minute', 'sql', 'x', $1, 'change', 'device', 'x', 'id-' || n
		FROM generate_series(0, 119) n`, e.team)
	e.exec(t, `INSERT INTO audit_log (actor_kind, actor, team_id, action, object_kind, object_id, object_name)
		VALUES ('sql', 'x', $1, 'change', 'device', 'x', 'id-foreign')`, uuid.New())
	p := e.signIn(t, e.team, roomsensor.Admin)
	path := "/teams/" + e.team.String() + "/audit"
	read := func(query string) (seen map[string]bool) {
		seen = map[string]bool{}
		for next := path + query; next != ""; {
			got := p.get(t, next)
			for _, line := range strings.Split(got.find(".entry").Text(), "Changed device ")[1:] {
				id := strings.Fields(line)[0]
				require.False(t, seen[id], id)
				seen[id] = true
			}
			next, _ = got.find(`a:contains("Older entries")`).Attr("href")
		}
		return seen
	}
	all := read("?object=id-")
	require.Len(t, all, 120)
	require.False(t, all["id-foreign"])
	require.Len(t, read("?object=id-&to=2026-01-01"), 60, "until midnight in Berlin")
	require.Len(t, read("?object=id-&from=2026-01-02&to=2026-01-02"), 60)
	require.Empty(t, read("?object=id-&from=2026-01-03"))
}
