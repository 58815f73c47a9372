package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/store"
	"roomsensor/test/proctest"
)

// settingsForm has valid values for all fields.
func settingsForm() url.Values {
	return url.Values{
		"name": {"Riverside"}, "time_zone": {"Asia/Kathmandu"}, "night_start": {"23:30"}, "night_end": {"06:00"},
		"co2_ppm_warn_high": {"1000"}, "temp_c_warn_low": {"15,5"}, "temp_c_warn_high": {"24"}, "temp_c_bad_high": {"26"},
	}
}

// TestSettings checks that an admin changes the settings of a team, and that others see them only.
func TestSettings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/settings"
	for _, role := range []roomsensor.Role{roomsensor.Viewer, roomsensor.Editor} {
		other := e.signIn(t, e.team, role)
		got := other.get(t, path)
		require.Equal(t, http.StatusOK, got.status)
		require.Contains(t, got.text, "CO₂stuffy above 1000 ppm, bad above 1400 ppm")
		require.Contains(t, got.text, "Temperaturestuffy below 16 or above 24 °C, bad below 14 or above 27 °C")
		require.Contains(t, got.text, "Lightno limit")
		require.Zero(t, got.find("main form").Length())
		require.Equal(t, http.StatusForbidden, other.post(t, path, settingsForm()).status)
	}
	p := e.signIn(t, e.team, roomsensor.Admin)
	got := p.get(t, path)
	zone, _ := got.find("#time_zone").Attr("value")
	require.Equal(t, "UTC", zone)
	require.Equal(t, 1, got.find(`#zones option[value="Europe/Berlin"]`).Length())

	saved := p.follow(t, p.post(t, path, settingsForm()))
	require.Contains(t, saved.text, "The settings of the team are saved.")
	team, err := e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, "Riverside", team.Name)
	require.Equal(t, "Asia/Kathmandu", team.TimeZone.String())
	require.Equal(t, "23:30-06:00", team.Night.String())
	require.Equal(t, airquality.Limits{
		roomsensor.CO2: {High: airquality.Bound{Warn: new(float32(1000))}},
		roomsensor.Temp: {
			Low: airquality.Bound{Warn: new(float32(15.5))}, High: airquality.Bound{Warn: new(float32(24)), Bad: new(float32(26))},
		},
	}, team.Limits.Limits)
}

// TestSettingsInvalid checks that each field that is not valid gets a sentence, that what was entered stays, and that
// nothing is saved.
func TestSettingsInvalid(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/settings"
	p := e.signIn(t, e.team, roomsensor.Admin)
	for _, test := range []struct{ field, value, element, want string }{
		{"name", "", "#name-error", "The name must not be empty."},
		{"time_zone", "europe/berlin", "#time_zone-error", `Did you mean "Europe/Berlin"?`},
		{"time_zone", "Atlantis", "#time_zone-error", "Choose a time zone from the list"},
		{"time_zone", "<b>", "#time_zone-error", "Choose a time zone from the list"},
		{"night_start", "25:00", "#night_start-error", "Enter the start of the night"},
		{"night_end", "23:30", "#night_end-error", "must not end at the time at which it begins"},
		{"temp_c_warn_low", "24", "#temp_c-error", "must be less than the highest one"},
		{"temp_c_bad_high", "20", "#temp_c-error", "from the lowest to the highest"},
		{"temp_c_warn_low", "warm", "#temp_c-error", "Enter a number from -90 to 90"},
	} {
		form := settingsForm()
		form.Set(test.field, test.value)
		got := p.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.find(test.element).Text(), test.want)
		value, _ := got.find("input[name=" + test.field + "]").Attr("value")
		require.Equal(t, test.value, value)
	}
	team, err := e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, "Team <&>", team.Name)
}

// TestSettingsOfTwoPeople checks that what one person saves stays when another one saves a page that is older, and that
// the second one sees what the first did if both changed the same setting.
func TestSettingsOfTwoPeople(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	path := "/teams/" + e.team.String() + "/settings"
	ada, grace := e.signIn(t, e.team, roomsensor.Admin), e.signIn(t, e.team, roomsensor.Admin)
	form := func(p *page) url.Values {
		form := url.Values{}
		p.find("form.card input").Each(func(_ int, input *goquery.Selection) {
			form.Set(input.AttrOr("name", ""), input.AttrOr("value", ""))
		})
		return form
	}
	older := form(grace.get(t, path))
	first := form(ada.get(t, path))
	first.Set("co2_ppm_bad_high", "1500")
	require.Contains(t, ada.follow(t, ada.post(t, path, first)).text, "The settings of the team are saved.")

	older.Set("humidity_pct_warn_low", "25")
	saved := grace.follow(t, grace.post(t, path, older))
	require.Contains(t, saved.text, "What others changed meanwhile stays: co2 ppm bad high.")
	team, err := e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, "..1000/1500", team.Limits.Limits[roomsensor.CO2].String())
	require.Equal(t, "25/..70/", team.Limits.Limits[roomsensor.Humidity].String())

	older.Set("co2_ppm_bad_high", "1800")
	refused := grace.post(t, path, older)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.find("#co2_ppm-error").Text(), "changed this to 1500 after you opened the page. Save again")
	require.Contains(t, refused.find("#co2_ppm-error").Text(), grace.email, "the change before was hers")
	again := form(refused)
	require.Equal(t, "1800", again.Get("co2_ppm_bad_high"))
	require.Equal(t, http.StatusSeeOther, grace.post(t, path, again).status)
	team, err = e.store.TeamSettings(t.Context(), e.team)
	require.NoError(t, err)
	require.Equal(t, "..1000/1800", team.Limits.Limits[roomsensor.CO2].String())
}

// busyStore cannot read the first device, because the database is overloaded.
type busyStore struct {
	*store.Store

	wasBusy atomic.Bool
}

func (b *busyStore) Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error) {
	if b.wasBusy.CompareAndSwap(false, true) {
		return roomsensor.Device{}, roomsensor.CodeOverloaded.New()
	}
	return b.Store.Device(ctx, teamID, deviceID)
}

// TestLimitRules checks that an admin adds, orders and removes rules for the rooms with a tag and for one device, and
// that pages follow them.
func TestLimitRules(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addDevice(t, e.team, "dev:1", "Dorm 1", 0)
	e.exec(t, `UPDATE devices SET metadata = '{"kind":"dorm"}' WHERE id = $1`, device)
	e.addReading(t, device, 5*time.Minute, 950, nil)
	path := "/teams/" + e.team.String() + "/settings"
	p := e.signIn(t, e.team, roomsensor.Admin)
	add := func(query string, form url.Values) *page { return p.post(t, path+"/limits"+query, form) }
	rules := func() (rules []string) {
		p.get(t, path).find("#rules tbody tr").Each(func(_ int, row *goquery.Selection) {
			rules = append(rules, strings.Join(strings.Fields(row.Find("th, td:nth-child(2), td:nth-child(3)").Text()), " "))
		})
		return rules
	}
	require.Contains(t, p.get(t, overviewPath(e.team)).tileText(device), "Good")
	saved := p.follow(t, add("", url.Values{"tag": {"kind=dorm"}, "metric": {"co2_ppm"}, "rule_warn_high": {"900"}}))
	require.Contains(t, saved.text, "The limits are saved.")
	require.Eventually(t, func() bool { // The page may be a second old.
		return strings.Contains(p.get(t, overviewPath(e.team)).tileText(device), "Stuffy")
	}, proctest.Patience, 100*time.Millisecond)
	add("", url.Values{"tag": {"floor=2"}, "metric": {"co2_ppm"}, "rule_warn_high": {"950"}})
	add("", url.Values{"tag": {"kind=dorm"}, "metric": {"co2_ppm"}, "rule_warn_high": {"920"}})
	require.Contains(t, p.get(t, path+"?device="+device.String()).find("#rules").Text(), "Dorm 1")
	add("?device="+device.String(), url.Values{"device_id": {device.String()}, "metric": {"temp_c"}})
	require.Equal(t, []string{"kind=dormCO₂stuffy above 920 ppm", "floor=2CO₂stuffy above 950 ppm", "Dorm 1Temperatureno limit"}, rules())
	add("", url.Values{"up": {"floor=2 co2_ppm"}})
	require.Equal(t, "floor=2CO₂stuffy above 950 ppm", rules()[0])
	add("", url.Values{"remove": {"floor=2 co2_ppm"}})
	require.Len(t, rules(), 2)

	other := e.addDevice(t, e.addTeam(t, "Other"), "dev:2", "Foreign", 0)
	for _, test := range []struct{ field, value, element, want string }{
		{"tag", "dorm", "#rule-tag-error", "key=value"},
		{"metric", "x", "#rules", ""},
		{"rule_warn_high", "x", "#rule-error", "Enter a number"},
		{"device_id", other.String(), "#rule-error", "There is no such device"},
	} {
		form := url.Values{"tag": {"a=b"}, "metric": {"co2_ppm"}, "rule_warn_high": {"900"}}
		form.Set(test.field, test.value)
		refused := add("", form)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, test.field)
		require.Contains(t, refused.find(test.element).Text(), test.want)
	}
	require.Equal(t, http.StatusNotFound, p.get(t, path+"?device="+other.String()).status)
	p.replica(t, &busyStore{Store: e.store}, nil)
	busy := add("", url.Values{"device_id": {device.String()}, "metric": {"co2_ppm"}})
	require.Equal(t, http.StatusServiceUnavailable, busy.status, "not that there is no such device")
	p.url = e.server.URL
	e.exec(t, `DELETE FROM devices WHERE id = $1`, device)
	require.Len(t, rules(), 1, "the rule of a deleted device is not shown")
}
