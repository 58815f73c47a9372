package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/secretscan"
)

// path returns a path of a page of the env's team.
func (e *env) path(path string) string { return "/teams/" + e.team.String() + path }

// newKeyForm opens the form for a new key and returns its fields, filled in.
func newKeyForm(t *testing.T, p *person, kind string) url.Values {
	t.Helper()
	page := p.get(t, p.env.path("/keys/"+kind+"/new"))
	require.Equal(t, http.StatusOK, page.status, page.text)
	form, ok := page.find("input[name=form]").Attr("value")
	require.True(t, ok)
	return url.Values{"form": {form}, "label": {"<b>Script</b>"}, "scope": {"read"}, "expires": {"never"}}
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	for kind, prefix := range map[string]string{"api": "rsk_", "upload": "rsi_"} {
		form := newKeyForm(t, p, kind)
		created := p.post(t, e.path("/keys/"+kind), form)
		require.Equal(t, http.StatusOK, created.status, created.text)
		require.Equal(t, "no-store", created.header.Get("Cache-Control"))
		text := created.find("#secret").Text()
		require.True(t, strings.HasPrefix(text, prefix), text)
		id, secret, ok := roomsensor.ParseKey(roomsensor.KeyKind(prefix[:3]), text)
		require.True(t, ok)

		// A form that is sent again creates no second key, and does not show the secret.
		again := p.post(t, e.path("/keys/"+kind), form)
		require.Equal(t, http.StatusConflict, again.status)
		require.Contains(t, again.text, "This form was sent before")
		require.Contains(t, again.text, id)
		list := p.get(t, e.path("/keys"))
		require.Equal(t, 1, strings.Count(list.text, id))
		require.Contains(t, list.text, "<b>Script</b>")
		key := p.get(t, e.path("/keys/"+kind+"/"+id))
		require.Equal(t, http.StatusOK, key.status)

		secrets := map[string]string{"secret": secret}
		for name, shown := range map[string]string{
			"the log": e.log.String(), "the repeated form": again.body, "the list": list.body, "the page of the key": key.body,
			"the cookie": p.cookie(t),
		} {
			require.Empty(t, secretscan.Find([]byte(shown), secrets), name)
		}
		var session string
		require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT string_agg(encode(data, 'escape'), '') FROM sessions").Scan(&session))
		require.Empty(t, secretscan.Find([]byte(session), secrets), "the session")
	}
	require.Empty(t, secretscan.Keys([]byte(e.log.String())))
}

func TestKeyForm(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	for _, c := range []struct {
		field, value, want string
	}{
		{"label", "", "Enter what the key is for"},
		{"label", strings.Repeat("x", 201), "Enter what the key is for"},
		{"scope", "all", "Choose what the key may do"},
		{"expires", "soon", "Choose when the key expires"},
		{"before", "2026-11-21", "This date has passed"},
		{"before", "tomorrow", "Enter a date"},
		{"before", "2046-11-21", "within the next 10 years"},
	} {
		form := newKeyForm(t, p, "api")
		form.Set(c.field, c.value)
		if c.field == "before" {
			form.Set("expires", "date")
		}
		answer := p.post(t, e.path("/keys/api"), form)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, c)
		require.Contains(t, answer.text, c.want)
	}
	for choice, want := range map[string]time.Time{
		"month": e.now.AddDate(0, 1, 0), "year": e.now.AddDate(1, 0, 0),
		"date": time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC),
	} {
		form := newKeyForm(t, p, "api")
		form.Set("expires", choice)
		form.Set("before", "2026-11-22")
		answer := p.post(t, e.path("/keys/api"), form)
		require.Equal(t, http.StatusOK, answer.status, answer.text)
		id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, answer.find("#secret").Text())
		keys, err := e.store.APIKeysByID(t.Context(), []string{id})
		require.NoError(t, err)
		require.True(t, want.Equal(*keys[0].ExpiresAt), "%s: %s", choice, keys[0].ExpiresAt)
	}
}

func TestKeyLimit(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	e.exec(t, `INSERT INTO api_keys (key_id, team_id, secret_sha256, created_at)
		SELECT 'k' || i, $1, sha256(''), $2 FROM generate_series(1, 200) i`, e.team, e.now)
	answer := p.post(t, e.path("/keys/api"), newKeyForm(t, p, "api"))
	require.Equal(t, http.StatusUnprocessableEntity, answer.status)
	require.Contains(t, answer.text, "200 keys")
	replaced := p.post(t, e.path("/keys/api/k1/replace"), url.Values{"form": {uuid.NewString()}, "overlap": {"7d"}})
	require.Equal(t, http.StatusUnprocessableEntity, replaced.status)
	require.Contains(t, replaced.find(".error").Text(), "200 keys")
	require.Equal(t, "7d", replaced.find("option[selected]").AttrOr("value", ""), "the choice stays")
	require.Equal(t, http.StatusOK, p.post(t, e.path("/keys/upload"), newKeyForm(t, p, "upload")).status)
}

func TestReplaceAndRevokeKey(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	for _, kind := range []string{"api", "upload"} {
		created := p.post(t, e.path("/keys/"+kind), newKeyForm(t, p, kind))
		id := strings.Split(created.find("#secret").Text(), "_")[1]
		path := e.path("/keys/" + kind + "/" + id)
		form := url.Values{"form": {p.get(t, path).find("input[name=form]").AttrOr("value", "")}, "overlap": {"7d"}}
		replaced := p.post(t, path+"/replace", form)
		require.Equal(t, http.StatusOK, replaced.status, replaced.text)
		next := strings.Split(replaced.find("#secret").Text(), "_")[1]
		require.NotEqual(t, id, next)
		require.Equal(t, http.StatusConflict, p.post(t, path+"/replace", form).status, "the same form again")

		revoked := p.post(t, path+"/revoke", nil)
		require.Contains(t, p.follow(t, revoked).text, "is revoked")
		require.Contains(t, p.get(t, path).text, "Revoked")
		form.Set("form", uuid.NewString())
		refused := p.post(t, path+"/replace", form)
		require.Equal(t, http.StatusConflict, refused.status)
		require.Contains(t, refused.text, "There is nothing to replace")
	}
}

// TestKeysOfOtherTeams checks that ids of keys of other teams look as if they did not exist.
func TestKeysOfOtherTeams(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	other := e.addTeam(t, "Other")
	_, err := e.store.CreateAPIKey(t.Context(), roomsensor.Key{ID: "theirs", TeamID: other, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)
	path := e.path("/keys/api/theirs")
	require.Equal(t, http.StatusNotFound, p.get(t, path).status)
	require.Equal(t, http.StatusNotFound, p.post(t, path+"/revoke", nil).status)
	form := url.Values{"form": {uuid.NewString()}, "overlap": {"1h"}}
	require.Equal(t, http.StatusNotFound, p.post(t, path+"/replace", form).status)
	keys, err := e.store.APIKeysByID(t.Context(), []string{"theirs"})
	require.NoError(t, err)
	require.Nil(t, keys[0].RevokedAt)
	require.Nil(t, keys[0].ExpiresAt)
}

// TestKeysNeedAdmin checks the roles of the pages of keys and rejects, and that the refusal says who can help.
func TestKeysNeedAdmin(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Editor)
	for _, path := range []string{"/keys", "/keys/api/new", "/rejects", "/rejects/list"} {
		answer := p.get(t, e.path(path))
		require.Equal(t, http.StatusForbidden, answer.status, path)
		require.Contains(t, answer.text, "Ask an admin of the team")
	}
	for _, path := range []string{"/keys/api", "/keys/api/x/revoke", "/keys/api/x/replace", "/rejects/replay", "/devices/new"} {
		require.Equal(t, http.StatusForbidden, p.post(t, e.path(path), url.Values{}).status, path)
	}
}
