package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dashboard"
	"roomsensor/internal/roomsensor"
)

// TestRoutes checks all routes: without a session they lead to the sign-in page, a team is 404 for those who are not its
// members, and a role that is too small is refused before anything else.
func TestRoutes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	other := e.addTeam(t, "Other")
	signedOut, foreign := e.stranger(t), e.signIn(t, other, roomsensor.Admin)
	members := map[roomsensor.Role]*person{}
	for _, role := range roomsensor.Roles {
		members[role] = e.signIn(t, e.team, role)
	}
	send := func(p *person, r dashboard.Route, team uuid.UUID) *page {
		return p.send(t, r.Method, r.Fill(team.String(), uuid.NewString()), url.Values{}, nil)
	}
	for _, r := range dashboard.Routes() {
		name := r.Method + " " + r.Path
		if r.Public {
			continue
		}
		answer := send(signedOut, r, e.team)
		require.Equal(t, http.StatusSeeOther, answer.status, name)
		require.True(t, strings.HasPrefix(answer.location(), "/sign-in"), name)
		if !r.OfTeam {
			continue
		}
		require.Equal(t, http.StatusNotFound, send(foreign, r, e.team).status, name)
		require.Equal(t, http.StatusNotFound, send(foreign, r, uuid.New()).status, name)
		needed, ok := roomsensor.ParseRole(r.Role)
		require.True(t, ok, "%s has no role", name)
		for role, member := range members {
			if role < needed {
				require.Equal(t, http.StatusForbidden, send(member, r, e.team).status, "%s as %s", name, role)
			}
		}
	}
}
