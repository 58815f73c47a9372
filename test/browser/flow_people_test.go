package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testInvite invites a person, who accepts in another browser and signs in again with the new password.
func (f *flow) testInvite(t *testing.T) {
	t.Helper()
	admin := f.as(t, roomsensor.Admin)
	admin.enter(t, "Team")
	admin.enter(t, "Members")
	invited := person{email: "invited-" + uuid.NewString()[:8] + "@example.com"}
	admin.fill(t, "Email address", invited.email)
	admin.choose(t, "Role", "editor")
	admin.enter(t, "Make invitation link")
	admin.requireText(t, "Send this link to "+invited.email)
	link := evaluate[string](t, admin, `document.getElementById('link').textContent`)
	admin.copyText(t, "Copy link")

	p := newTab(t, f.view)
	p.open(t, link)
	require.Contains(t, p.text(t), "You are invited as editor")
	p.fill(t, "Your name", "Robin Vale")
	p.fill(t, "Password", secretPassword)
	p.enter(t, "Join the team")
	require.Equal(t, f.path, p.address(t))
	require.Contains(t, p.text(t), "Your password is set, and you are signed in.")
	p.requireQuiet(t)
	p.signOut(t)
	f.signIn(t, p, invited)
	require.Contains(t, p.text(t), "Harbor Club")

	stranger := newTab(t, f.view)
	require.EqualValues(t, http.StatusNotFound, stranger.open(t, link).Status)
	require.Contains(t, stranger.text(t), "This link was used")

	admin.open(t, f.path+"/members")
	require.Contains(t, admin.text(t), invited.email)
	require.NotContains(t, admin.text(t), "Open invitations")
	require.NotContains(t, evaluate[string](t, admin, `document.documentElement.outerHTML`), link)
}

// testPeople finds out who slept badly, and why: from the table of people to a person, the room in that night, and back.
func (f *flow) testPeople(t *testing.T) {
	t.Helper()
	f.exec(t, `UPDATE readings SET co2_ppm = 1600 WHERE device_id = $1 AND bucket_at < now() - interval '20 hours'`, f.pool)
	p := f.as(t, roomsensor.Viewer)
	p.enter(t, "People")
	require.Regexp(t, `^Ana Ruiz .*bad`, evaluate[string](t, p, `document.querySelector('h1').textContent`))
	p.enter(t, "Ana Ruiz")
	require.Contains(t, p.text(t), "Ana Ruiz had bad air in ")
	require.Contains(t, p.text(t), "CO₂ was above 1400\u00a0ppm for ")
	bad := evaluate[string](t, p, `[...document.querySelectorAll('tbody tr')].find((r) => /Bad/.test(r.innerText)).querySelector('a').textContent`)
	person := p.address(t)
	p.enter(t, bad)
	require.Contains(t, p.text(t), "Pool, Ana Ruiz")
	p.enter(t, "← Nights of this person")
	require.Equal(t, person, p.address(t))
	p.requireQuiet(t)
}

// testSignOut signs out here, and then everywhere.
func (f *flow) testSignOut(t *testing.T) {
	t.Helper()
	who := f.person(t, f.team, roomsensor.Viewer)
	here, there := newTab(t, f.view), newTab(t, f.view)
	f.signIn(t, here, who)
	f.signIn(t, there, who)
	here.signOut(t)
	there.open(t, f.path)
	require.Equal(t, f.path, there.address(t), "the other session goes on")

	f.signIn(t, here, who)
	here.tabTo(t, "Robin Vale")
	here.press(t, kb.Enter)
	here.enter(t, "Account")
	here.enter(t, "Sign out everywhere")
	for _, p := range []*tab{here, there} {
		p.open(t, f.path)
		require.Contains(t, p.address(t), "/sign-in")
	}
	// A person who signs in gets the page that was asked for.
	there.fillFocused(t, who.email)
	there.fill(t, "Password", secretPassword)
	there.enter(t, "Sign in")
	require.Equal(t, f.path, there.address(t))
}
