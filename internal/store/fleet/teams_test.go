package fleet_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/timezone"
)

// TestUpdateTeamSettings checks the defaults of a team, a change, a refused change, and what SQL can have stored.
func TestUpdateTeamSettings(t *testing.T) {
	t.Parallel()
	f := setup(t)
	team, err := f.TeamSettings(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, "UTC", team.TimeZone.String())
	team.TimeZone = time.UTC
	require.Equal(t, accounts.TeamSettings{
		ID: f.TeamID, Name: "Team", TimeZone: time.UTC, Night: airquality.DefaultNightHours,
		Limits: airquality.TeamLimits{Limits: airquality.DefaultLimits()}, Alerts: alerting.DefaultSettings,
	}, team)

	want := team
	want.Name, want.Night = "Name", airquality.NightHours{Start: 90, End: 6*60 + 5}
	want.Limits.Limits = airquality.Limits{
		roomsensor.Lux: {High: airquality.Bound{Warn: new(float32(10.1)), Bad: new(float32(20))}},
		roomsensor.CO2: {Low: airquality.Bound{Warn: new(float32(0))}},
	}
	want.Limits.Rules = []airquality.LimitRule{
		{Tag: "kind=dorm", Metric: roomsensor.CO2, Limit: airquality.DefaultLimits()[roomsensor.CO2]},
		{DeviceID: f.DeviceID, Metric: roomsensor.Sound},
	}
	want.Alerts = alerting.Settings{
		Silent: time.Hour, Bad: time.Minute, BadAtNight: true, Coverage: 100, Rejected: 2 * time.Hour, MailAt: 61, MailDay: time.Saturday,
	}
	want.TimeZone, _ = timezone.Load("Australia/Lord_Howe")
	changed, err := f.UpdateTeamSettings(t.Context(), f.TeamID, func(team *accounts.TeamSettings) error {
		*team = want
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, want, changed)
	refused := roomsensor.Invalid("name", "no")
	_, err = f.UpdateTeamSettings(t.Context(), f.TeamID, func(team *accounts.TeamSettings) error {
		team.Name = "lost"
		return refused
	})
	require.ErrorIs(t, err, refused)
	team, err = f.TeamSettings(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, want.TimeZone.String(), team.TimeZone.String())
	team.TimeZone = want.TimeZone
	require.Equal(t, want, team)

	f.Exec(t, `UPDATE teams SET time_zone = 'Europe/Atlantis', limits = '{"co2_ppm": 1, "lux": {"high": "x"}, "x": {},
		"temp_c": {"low": {"bad": 16}}, "rules": [{"metric": "co2_ppm"}, {"tag": "a=b", "metric": "x"}]}'`)
	team, err = f.TeamSettings(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, time.UTC, team.TimeZone)
	both := airquality.Bound{Warn: new(float32(16)), Bad: new(float32(16))}
	require.Equal(t, airquality.TeamLimits{Limits: airquality.Limits{roomsensor.Temp: {Low: both}}}, team.Limits)
	for _, sql := range []string{"night_start = '24:00'", "night_end = '07:00:30'", "night_end = night_start", "limits = '[]'"} {
		_, err := f.SQL.Exec(t.Context(), "UPDATE teams SET "+sql)
		require.ErrorContains(t, err, "check constraint", sql)
	}
	_, err = f.TeamSettings(t.Context(), uuid.New())
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.UpdateTeamSettings(t.Context(), uuid.New(), func(*accounts.TeamSettings) error { return nil })
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
