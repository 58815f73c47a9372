package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// american is the form of a person who reads °F, 12 hours and the month first.
func american() url.Values {
	return url.Values{"fahrenheit": {"true"}, "hour12": {"true"}, "month_first": {"true"}}
}

// TestFormatForm checks the form of the account: a choice is stored and shown, a refused form keeps what was entered, and
// an empty choice follows the browser again.
func TestFormatForm(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	selected := func(got *page) (values []string) {
		for _, name := range []string{"fahrenheit", "hour12", "month_first"} {
			values = append(values, got.find("select[name="+name+"] option[selected]").AttrOr("value", ""))
		}
		return values
	}
	require.Equal(t, []string{"", "", ""}, selected(p.get(t, "/account")))
	form := url.Values{"fahrenheit": {"true"}, "hour12": {"false"}}
	saved := p.follow(t, p.post(t, "/account/format", form))
	require.Contains(t, saved.text, "as you chose")
	require.Equal(t, []string{"true", "false", ""}, selected(saved))

	refused := p.post(t, "/account/format", url.Values{"hour12": {"13"}, "month_first": {"true"}})
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Equal(t, "Choose one of the list.", refused.find("#hour12-error").Text())
	require.Equal(t, "hour12", refused.find("[autofocus]").AttrOr("name", ""))
	require.Equal(t, []string{"", "", "true"}, selected(refused))
	require.Equal(t, []string{"true", "false", ""}, selected(p.get(t, "/account")), "nothing was saved")

	printed := func(languages string) string {
		return p.send(t, http.MethodGet, e.path(""), nil, map[string]string{"Accept-Language": languages}).find(".printed").Text()
	}
	p.post(t, "/account/format", nil)
	require.Contains(t, printed("de"), "as of Sun 22 Nov 2026, 14:05")
	require.Contains(t, printed("en-US,en;q=0.9"), "as of Sun Nov 22, 2026, 2:05 PM")
}

// TestFormats checks that pages have the format of the person who reads them, also of tiles that others have read.
func TestFormats(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	device := e.addDevice(t, e.team, "dev:5", "Sauna", time.Minute)
	e.addReading(t, device, 10*time.Minute, 600, 30)
	e.exec(t, `INSERT INTO alerts (team_id, rule, subject, device_id, detail, since, noted_at)
		VALUES ($1, 'bad', 'a', $2, 'temp_c above 27', $3, $3)`, e.team, device, e.now.Add(-time.Hour))
	us, other := e.signIn(t, e.team, roomsensor.Viewer), e.signIn(t, e.team, roomsensor.Viewer)
	require.Equal(t, http.StatusSeeOther, us.post(t, "/account/format", american()).status)
	for _, test := range []struct {
		path, selector string
		us, other      []string
	}{
		{"", "main", []string{"86.0 °F", "Nov 22, 3:05:00 PM"}, []string{"30.0 °C", "22 Nov, 15:05:00"}},
		{
			"/devices/" + device.String(), ".chart-card.temp_c",
			[]string{"Temperature °F", "Newest: 86.0 °F at Sun Nov 22, 2:55 PM.", "Above 80.6 °F: 1 of 1 points.", "limit 75.2 °F", "6 PM"},
			[]string{"Temperature °C", "Newest: 30.0 °C at Sun 22 Nov, 14:55.", "Above 27 °C: 1 of 1 points.", "limit 24 °C", "18:00"},
		},
		{
			"/devices/" + device.String(), "#numbers",
			[]string{"Temperature °F", "Sun Nov 22, 2:55 PM", "86.0"},
			[]string{"Temperature °C", "Sun 22 Nov, 14:55", "30.0"},
		},
		{
			"/nights", "main",
			[]string{"68.8 °F", "Sat Nov 21, 10:00 PM to Sun Nov 22, 7:00 AM"},
			[]string{"20.4 °C", "Sat 21 Nov, 22:00 to Sun 22 Nov, 07:00"},
		},
		{"/alerts", "main", []string{"Temperature above 80.6 °F", "since Sun Nov 22, 2:05 PM"}, []string{"Temperature above 27 °C", "since Sun 22 Nov, 14:05"}},
	} {
		for _, reader := range []struct {
			*person
			has, lacks []string
		}{{us, test.us, test.other}, {other, test.other, test.us}} {
			shown := reader.get(t, e.path(test.path)).find(test.selector)
			text := strings.Join(strings.Fields(shown.Text()), " ")
			for i := range reader.has {
				require.Contains(t, text, reader.has[i], test.path)
				require.NotContains(t, text, reader.lacks[i], test.path)
			}
		}
	}
}
