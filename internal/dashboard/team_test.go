package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// settingsForm has valid values for all fields.
func settingsForm() url.Values {
	return url.Values{
		"name": {"Riverside"}, "time_zone": {"Asia/Kathmandu"}, "night_start": {"23:30"}, "night_end": {"06:00"},
		"co2_ppm_high": {"1000"}, "temp_c_low": {"15.5"}, "temp_c_high": {"24"},
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
		require.Contains(t, got.text, "CO₂at most 1200 ppm")
		require.Contains(t, got.text, "Temperature16 to 26 °C")
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
	require.Equal(t, roomsensor.Thresholds{
		roomsensor.CO2: {High: new(float32(1000))}, roomsensor.Temp: {Low: new(float32(15.5)), High: new(float32(24))},
	}, team.Thresholds)
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
		{"time_zone", "<b>", "#time_zone-error", "Choose a time zone from the list"},
		{"night_start", "25:00", "#night_start-error", "Enter the start of the night"},
		{"night_end", "23:30", "#night_end-error", "must not end at the time at which it begins"},
		{"temp_c_low", "24", "#temp_c-error", "must be less than the highest one"},
		{"temp_c_low", "warm", "#temp_c-error", "Enter a number from -90 to 90"},
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
	require.Equal(t, http.StatusNotFound, e.signIn(t, e.addTeam(t, "Other"), roomsensor.Admin).post(t, path, settingsForm()).status)
}
