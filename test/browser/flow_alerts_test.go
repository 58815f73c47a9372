package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testAlerts waits for the alert about the sauna, which the demo evaluates, chooses mails, stops them with the link of a
// mail, and changes a rule.
func (f *flow) testAlerts(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Admin)
	p.enter(t, "Alerts")
	require.Eventually(t, func() bool {
		p.open(t, f.path+"/alerts")
		return strings.Contains(p.text(t), "Sauna sends nothing")
	}, patience, 100*time.Millisecond)
	require.Contains(t, p.text(t), "wrong now")
	p.tabTo(t, "Morning report, each day at 07:30 (Asia/Kolkata)")
	p.press(t, " ")
	p.enter(t, "Save your mails")
	require.Contains(t, p.text(t), "You get the mails that you chose")
	var stop string
	f.scan(t, []any{&stop}, `SELECT stop::text FROM mail_choices WHERE team_id = $1 AND morning AND NOT alerts`, f.team)

	p.fill(t, "Bad air in a room, in minutes", "30")
	p.enter(t, "Save the rules")
	require.Contains(t, p.text(t), "The rules of alerts are saved.")
	p.enter(t, "Sauna sends nothing")
	require.Contains(t, p.address(t), f.path+"/devices/")
	p.requireQuiet(t)

	stranger := newTab(t, f.view)
	stranger.open(t, f.url+"/mails/stop/"+stop)
	stranger.enter(t, "Stop the mails")
	require.Contains(t, stranger.text(t), "You get no more mails of Harbor Club")
}
