package page

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// More requests than teamPageBurst wait for teamPageRate, and more pages than MaxTeamPages for the end of others.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, team, began := newTurns(), uuid.New(), time.Now()
		for range teamPageBurst + 2*teamPageRate {
			held, err := all.take(t.Context(), team, true)
			require.NoError(t, err)
			held.Release()
		}
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.01)

		for range MaxTeamPages {
			held, err := all.take(t.Context(), team, false)
			require.NoError(t, err)
			defer held.Release()
		}
		refusal := func() *roomsensor.Error {
			_, err := all.take(t.Context(), team, false)
			var refused *roomsensor.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, roomsensor.CodeOverloaded, refused.Code)
			return refused
		}
		began = time.Now()
		require.Equal(t, "pages.team", refusal().Limit)
		require.Equal(t, RequestTimeout, time.Since(began))
	})
}

// Requests of a session beyond maxVisits are refused before they need the database, and so are those of a network beyond
// maxVisits on public pages and half of all on others. Those of others are not.
func TestEnter(t *testing.T) {
	t.Parallel()
	s := &Site{
		visits: newVisits("visits", 2*maxVisits), strangers: newVisits("public_visits", 2*maxVisits),
		clients: func(r *http.Request) string { return r.RemoteAddr }, sessions: newSessions(nil, false),
	}
	enter := func(token, client string, public bool) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = client
		if token != "" {
			r.Header.Set("Cookie", s.sessions.manager.Cookie.Name+"="+token)
		}
		_, err := s.enter(echo.New().NewContext(r, httptest.NewRecorder()), Route{Public: public})
		if refused, ok := errors.AsType[*roomsensor.Error](err); ok {
			return refused.Limit
		}
		require.NoError(t, err)
		return ""
	}
	for range maxVisits {
		require.Empty(t, enter("a", "192.0.2.1", false))
		require.Empty(t, enter("", "192.0.2.1", false))
	}
	require.Equal(t, "visits.key", enter("a", "198.51.100.1", false))
	require.Equal(t, "public_visits.key", enter("b", "192.0.2.9", true))
	require.Equal(t, "visits.team", enter("b", "192.0.2.1", false), "a network can make up sessions")
	require.Empty(t, enter("b", "198.51.100.1", false))
	require.Empty(t, enter("", "198.51.100.1", true))
}
