package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testAlerts chooses mails, stops them with the link of a mail, and changes a rule.
func (f *flow) testAlerts(t *testing.T) {
	t.Helper()
	f.exec(t, `INSERT INTO alert_rounds (team_id, evaluated_at) VALUES ($1, now())`, f.team)
	f.exec(t, `INSERT INTO alerts (team_id, rule, subject, device_id, detail, since, noted_at)
		VALUES ($1, 'bad', $2::text, $2::uuid, 'CO₂ above 1400 ppm', now() - interval '1 hour', now())`, f.team, f.pool)
	p := f.as(t, roomsensor.Admin)
	p.enter(t, "Alerts")
	require.Contains(t, p.text(t), "1 thing is wrong now")
	p.tabTo(t, "Morning report, each day at 07:30 (Asia/Kolkata)")
	p.press(t, " ")
	p.enter(t, "Save your mails")
	require.Contains(t, p.text(t), "You get the mails that you chose")
	var stop string
	f.scan(t, []any{&stop}, `SELECT stop::text FROM mail_choices WHERE team_id = $1 AND morning AND NOT alerts`, f.team)

	p.fill(t, "Bad air in a room, in minutes", "30")
	p.enter(t, "Save the rules")
	require.Contains(t, p.text(t), "The rules of alerts are saved.")
	p.enter(t, "Pool (Ana Ruiz) has bad air: CO₂ above 1400 ppm")
	require.Equal(t, f.path+"/devices/"+f.pool.String(), p.address(t))
	p.requireQuiet(t)

	stranger := newTab(t, f.view)
	stranger.open(t, f.url+"/mails/stop/"+stop)
	stranger.tabTo(t, "Stop the mails")
	stranger.press(t, kb.Enter)
	stranger.requireText(t, "You get no more mails of Harbor Club")
}
