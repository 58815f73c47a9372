package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dashboard"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// invite returns the path of the link that an admin gets.
func (p *person) invite(t *testing.T, email, role string) string {
	t.Helper()
	answer := p.post(t, p.members(), url.Values{"email": {email}, "role": {role}})
	require.Equal(t, http.StatusOK, answer.status, answer.text)
	path, ok := strings.CutPrefix(answer.find("#link").Text(), "http://127.0.0.1:8082")
	require.True(t, ok, answer.text)
	return path
}

// members returns the path of the members of the test's team.
func (p *person) members() string { return "/teams/" + p.env.team.String() + "/members" }

// requireActors checks that the audit log names the person of every change that the dashboard made, and that a person
// made some.
func (e *env) requireActors(t *testing.T, emails ...string) {
	t.Helper()
	var actors []string
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT array_agg(DISTINCT actor_kind || ' ' || actor) FROM audit_log
		WHERE database_user <> session_user`).Scan(&actors))
	want := []string{}
	for _, email := range emails {
		want = append(want, "person "+email)
	}
	require.ElementsMatch(t, want, actors)
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.now = time.Now() // The database ends links by its own clock.
	admin, guest := e.signIn(t, e.team, roomsensor.Admin), e.stranger(t)
	replaced := admin.invite(t, "kim@example.com", "viewer")
	link := admin.invite(t, "kim@example.com", "editor")
	require.Equal(t, http.StatusNotFound, guest.get(t, replaced).status)
	require.Contains(t, guest.get(t, link).text, "You are invited as editor")
	short := guest.post(t, link, url.Values{"password": {"short"}})
	require.Equal(t, http.StatusUnprocessableEntity, short.status)
	require.Contains(t, short.text, "The password must have at least 12 characters")
	joined := guest.post(t, link, url.Values{"password": {secretPassword}, "name": {"Kim"}})
	require.Equal(t, "/teams/"+e.team.String(), joined.location())
	require.Contains(t, guest.get(t, "/account").text, "editor of Team <&>")
	require.Equal(t, http.StatusNotFound, guest.get(t, link).status, "it works once")
	e.requireActors(t, admin.email, "kim@example.com")

	// For an account with a password, only the person who knows it may use a link.
	other := e.addTeam(t, "Other")
	foreign := e.signIn(t, other, roomsensor.Admin)
	answer := foreign.post(t, "/teams/"+other.String()+"/members", url.Values{"email": {"Kim@example.com"}, "role": {"viewer"}})
	second := strings.TrimPrefix(answer.find("#link").Text(), "http://127.0.0.1:8082")
	takeover := foreign.post(t, second, url.Values{"password": {"another long password"}})
	require.Equal(t, http.StatusUnprocessableEntity, takeover.status)
	require.Contains(t, takeover.text, "This account has a password.")
	require.Equal(t, "/teams/"+other.String(), guest.post(t, second, nil).location())
}

func TestMembers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.now = time.Now() // The database ends links by its own clock.
	admin, kim := e.signIn(t, e.team, roomsensor.Admin), e.signIn(t, e.team, roomsensor.Viewer)
	ofKim := admin.members() + "/" + kim.id.String()
	for _, form := range []url.Values{{"email": {"x"}, "role": {"viewer"}}, {"email": {kim.email}, "role": {"viewer"}}, {"email": {"x@example.com"}, "role": {"x"}}} {
		require.Equal(t, http.StatusUnprocessableEntity, admin.post(t, admin.members(), form).status, form)
	}
	self := admin.members() + "/" + admin.id.String()
	for path, form := range map[string]url.Values{self + "/remove": nil, self + "/role": {"role": {"viewer"}}} {
		answer := admin.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status)
		require.Contains(t, answer.text, "This person is the only admin.")
	}
	require.Equal(t, http.StatusSeeOther, admin.post(t, ofKim+"/role", url.Values{"role": {"admin"}}).status)
	require.Equal(t, http.StatusOK, kim.get(t, kim.members()).status)

	// A link for a new password ends the other sessions. It is refused for a person of other teams.
	reset := admin.post(t, ofKim+"/reset", nil).find("#link").Text()
	browser := e.stranger(t)
	done := browser.post(t, strings.TrimPrefix(reset, "http://127.0.0.1:8082"), url.Values{"password": {"another long password"}})
	require.Equal(t, http.StatusSeeOther, done.status, done.text)
	require.Equal(t, http.StatusOK, browser.get(t, "/account").status)
	require.Equal(t, http.StatusSeeOther, kim.get(t, "/account").status)
	again := strings.TrimPrefix(admin.post(t, ofKim+"/reset", nil).find("#link").Text(), "http://127.0.0.1:8082")
	require.Contains(t, admin.get(t, admin.members()).text, "New password"+admin.email)
	require.Equal(t, http.StatusOK, browser.get(t, again).status)
	e.addMember(t, e.addTeam(t, "Other"), kim.id, roomsensor.Viewer)
	require.Equal(t, http.StatusNotFound, browser.get(t, again).status)
	require.Contains(t, admin.post(t, ofKim+"/reset", nil).text, "This person belongs to other teams too.")

	require.Equal(t, http.StatusSeeOther, admin.post(t, ofKim+"/remove", nil).status)
	require.Equal(t, http.StatusNotFound, browser.get(t, kim.members()).status)
	require.Equal(t, http.StatusNotFound, admin.post(t, ofKim+"/remove", nil).status)
	e.requireActors(t, admin.email, kim.email)
}

// lateBackend changes the role of a person after the role was read for a request.
type lateBackend struct {
	dashboard.Backend
	change func(userID uuid.UUID)
}

func (b *lateBackend) Membership(ctx context.Context, teamID, userID uuid.UUID) (accounts.Membership, error) {
	m, err := b.Backend.Membership(ctx, teamID, userID)
	b.change(userID)
	return m, err
}

// TestRoleWhenUsed checks that a change needs the role that the person has when it is stored.
func TestRoleWhenUsed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	admin := e.signIn(t, e.team, roomsensor.Admin)
	admin.url = e.serve(t, &lateBackend{e.store, func(userID uuid.UUID) {
		_, err := e.sql.Exec(t.Context(), `UPDATE memberships SET role = 'viewer' WHERE user_id = $1`, userID)
		require.NoError(t, err)
	}}, nil).URL
	admin.enter(t)
	answer := admin.post(t, admin.members(), url.Values{"email": {"kim@example.com"}, "role": {"admin"}})
	require.Equal(t, http.StatusForbidden, answer.status)
	require.Contains(t, answer.text, "This needs the role admin in the team.")
}

func TestAccount(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	elsewhere := e.stranger(t)
	elsewhere.email = p.email
	elsewhere.enter(t)
	before := p.cookie(t)
	wrong := p.post(t, "/account/password", url.Values{"current": {"wrong"}, "password": {"another long password"}})
	require.Contains(t, wrong.text, "This is not your current password.")
	changed := p.post(t, "/account/password", url.Values{"current": {secretPassword}, "password": {"another long password"}})
	require.Contains(t, p.follow(t, changed).text, "Your password is changed.")
	require.NotEqual(t, before, p.cookie(t), "the session has a new token")
	require.Equal(t, http.StatusSeeOther, elsewhere.get(t, "/account").status, "all other sessions end")
	require.Equal(t, "/sign-in?signed-out=1", p.post(t, "/account/sign-out", nil).location())
	require.Equal(t, http.StatusSeeOther, p.get(t, "/account").status)
	e.requireActors(t, p.email)
}

// TestRefusedPasswords checks that nobody chooses a password of the list, or one that is made of words about the person.
func TestRefusedPasswords(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.now = time.Now() // The database ends links by its own clock.
	refused, err := password.ReadList(strings.NewReader("trustno1trustno1\n"), roomsensor.MinPassword)
	require.NoError(t, err)
	admin := e.signIn(t, e.team, roomsensor.Admin)
	guest := e.stranger(t)
	guest.url = e.serve(t, e.store, func(c *dashboard.Config) { c.RefusedPasswords = refused }).URL
	link := admin.invite(t, "kim.novak@example.com", "viewer")
	for secret, want := range map[string]string{
		"TrustNo1TrustNo1":  "is in a list of passwords that attackers know",
		"novak example 123": "beside your name and address, those of your team",
		"Roomsensor 2026!":  "beside your name and address, those of your team",
	} {
		answer := guest.post(t, link, url.Values{"password": {secret}})
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, secret)
		require.Contains(t, answer.text, want)
	}
	require.Equal(t, http.StatusSeeOther, guest.post(t, link, url.Values{"password": {secretPassword}}).status)
	for secret, want := range map[string]string{
		"trustno1trustno1": "The new password is in a list of passwords", "novak example 123": "beside your name and address",
	} {
		answer := guest.post(t, "/account/password", url.Values{"current": {secretPassword}, "password": {secret}})
		require.Contains(t, answer.text, want)
	}
}

// TestSignInLimit checks that an address is refused after too many attempts for an account, and that this locks nobody
// else out.
func TestSignInLimit(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addUser(t, "ana@example.com")
	e.addUser(t, "kim@example.com")
	p := e.stranger(t)
	for range accounts.MaxPairAttempts {
		answer := p.post(t, "/sign-in", url.Values{"email": {"ana@example.com"}, "password": {"wrong"}})
		require.Equal(t, http.StatusUnprocessableEntity, answer.status)
	}
	answer := p.post(t, "/sign-in", url.Values{"email": {"Ana@example.com"}, "password": {secretPassword}})
	require.Equal(t, http.StatusTooManyRequests, answer.status)
	require.NotEmpty(t, answer.header.Get("Retry-After"))
	p.email = "kim@example.com"
	p.enter(t)

	// The clock of the database stepped back after these attempts.
	e.exec(t, `UPDATE sign_in_attempts SET began_at = began_at + interval '6 hours'`)
	other := e.stranger(t)
	other.email = "ana@example.com"
	other.enter(t)
}
