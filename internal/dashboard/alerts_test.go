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
	"roomsensor/internal/roomsensor/alerting"
)

// TestAlertsPage checks what each role sees: what is wrong now with the next step, what ended, the report, and who must act
// if nobody evaluates alerts.
func TestAlertsPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/alerts"
	admin := e.signIn(t, e.team, roomsensor.Admin)
	got := admin.get(t, path)
	require.Contains(t, got.text, "Alerts are not evaluated now")
	require.Contains(t, got.text, "No process evaluates alerts.")

	device := e.addDevice(t, e.team, "dev:1", "Room <12>", time.Minute)
	e.exec(t, `INSERT INTO alert_rounds (team_id, evaluated_at, report) VALUES ($1, $2,
		'{"at": "2026-11-22T07:30:00Z", "headline": "1 of 2 bedrooms had bad air", "people": [{"name": "Ana", "text": "CO₂ was high."}],
		  "good": ["Ben"], "changes": ["Cem, night of Fri: was unknown, is bad."]}')`, e.team, e.now.Add(-time.Minute))
	e.exec(t, `INSERT INTO alerts (team_id, rule, subject, device_id, detail, since, noted_at, ended_at, outcome) VALUES
		($1, 'bad', 'a', $2, 'co2_ppm above 1400', $3, $3, NULL, NULL), ($1, 'silent', 'b', $2, '', $3, $3, $4, 'over'),
		($1, 'silent', 'c', $2, '', $3, $3, $5, 'over'), ($1, 'rejects', 'dev:7', NULL, 'unknown_unit', $3, $3, NULL, NULL)`,
		e.team, device, e.now.Add(-time.Hour), e.now.Add(-time.Minute), e.now.Add(-8*24*time.Hour))
	other := e.addTeam(t, "Other")
	e.exec(t, `INSERT INTO alerts (team_id, rule, subject, detail, since, noted_at) VALUES ($1, 'rejects', 'dev:99', 'x', $2, $2)`,
		other, e.now)
	got = admin.get(t, path)
	for _, part := range []string{
		"2 things are wrong now", "Room <12> has bad air: CO₂ above 1400 ppm", "Air the room.",
		"Readings of dev:7 are rejected: unknown_unit", "Morning report: 1 of 2 bedrooms had bad air", "Ana: CO₂ was high.",
		"Good air: Ben", "Cem, night of Fri: was unknown, is bad.", "This installation sends no mails",
	} {
		require.Contains(t, got.text, part)
	}
	require.NotContains(t, got.text, "dev:99")
	require.Equal(t, 1, got.find("#ended tbody tr").Length(), "alerts of the last 7 days")
	require.Equal(t, 1, got.find(`a[href*="/rejects?unit=dev%3A7"]`).Length())

	viewer := e.signIn(t, e.team, roomsensor.Viewer)
	got = viewer.get(t, path)
	require.Zero(t, got.find(`a[href*="/rejects"]`).Length(), "a viewer may not open the rejects")
	require.Contains(t, got.text, "the air of a room is bad for 20 min")
	require.Contains(t, got.text, "a device sends nothing for 3 h")
	require.Zero(t, got.find(`form[action$="/alerts/rules"]`).Length())
}

// TestChooseMails checks that a member chooses mails, and stops them with the link of a mail without signing in.
func TestChooseMails(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/alerts"
	viewer := e.signIn(t, e.team, roomsensor.Viewer)
	got := viewer.follow(t, viewer.post(t, path+"/mails", url.Values{"alerts": {"on"}, "weekly": {"on"}}))
	require.Contains(t, got.text, "You get the mails that you chose, at "+viewer.email)
	checked := got.find(`#mails input[checked]`)
	require.Equal(t, 2, checked.Length())

	var stop uuid.UUID
	require.NoError(t, e.sql.QueryRow(t.Context(), `SELECT stop FROM mail_choices`).Scan(&stop))
	stranger := e.stranger(t)
	link := "/mails/stop/" + stop.String()
	page := stranger.get(t, link)
	require.Contains(t, page.text, "Stop the mails of Team <&>?")
	choice, err := e.store.MailChoice(t.Context(), e.team, viewer.id)
	require.NoError(t, err)
	require.True(t, choice.Alerts, "programs that check links open it too")
	require.Contains(t, stranger.post(t, link, url.Values{"List-Unsubscribe": {"One-Click"}}).text, "You get no more mails of Team <&>")
	choice, err = e.store.MailChoice(t.Context(), e.team, viewer.id)
	require.NoError(t, err)
	require.False(t, choice.Alerts || choice.Weekly)
	for _, wrong := range []string{"/mails/stop/" + uuid.NewString(), "/mails/stop/x"} {
		require.Equal(t, http.StatusNotFound, stranger.get(t, wrong).status)
		require.Equal(t, http.StatusNotFound, stranger.post(t, wrong, nil).status)
	}

	e.exec(t, `INSERT INTO mails (team_id, user_id, kind, done_at, error, created_at) SELECT team_id, user_id, 'alerts', now(), '550 no such user', $1
		FROM mail_choices`, e.now)
	require.NotContains(t, viewer.get(t, path).text, "550 no such user")
	require.Contains(t, e.signIn(t, e.team, roomsensor.Admin).get(t, path).text, "Given up: 550 no such user")
}

// TestAlertRules checks that an admin changes the rules, and what is refused.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/alerts"
	admin := e.signIn(t, e.team, roomsensor.Admin)
	was, _ := admin.get(t, path).find(`input[name=was]`).Attr("value")
	form := url.Values{
		"was": {was}, "silent": {"60"}, "bad": {"0"}, "bad_at": {"night"}, "coverage": {"90"}, "rejects": {"1440"},
		"mail_at": {"06:15"}, "mail_day": {"0"},
	}
	require.Equal(t, http.StatusForbidden, e.signIn(t, e.team, roomsensor.Editor).post(t, path+"/rules", form).status)
	require.Contains(t, admin.follow(t, admin.post(t, path+"/rules", form)).text, "The rules of alerts are saved.")
	team, err := e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, alerting.Settings{
		Silent: time.Hour, BadAtNight: true, Coverage: 90, Rejected: 24 * time.Hour, MailAt: 6*60 + 15, MailDay: time.Sunday,
	}, team.Alerts)

	// Another admin opened the page before.
	form.Set("silent", "30")
	form.Set("coverage", "80") // As it was.
	refused := admin.post(t, path+"/rules", form)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.find("#silent-error").Text(), "changed this to 60 after you opened the page")
	require.Empty(t, refused.find("#coverage-error").Text())

	for field, value := range map[string]string{
		"silent": "10081", "bad": "-1", "coverage": "101", "rejects": "1.5", "mail_at": "24:00", "mail_day": "7",
	} {
		wrong := url.Values{}
		for name := range form {
			wrong.Set(name, form.Get(name))
		}
		wrong.Del("was")
		wrong.Set(field, value)
		refused := admin.post(t, path+"/rules", wrong)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, field)
		require.NotEmpty(t, strings.TrimSpace(refused.find("#"+field+"-error").Text()), field)
	}
}
