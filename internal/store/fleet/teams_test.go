package fleet_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
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
	require.Equal(t, roomsensor.TeamSettings{
		ID: f.TeamID, Name: "Team", TimeZone: time.UTC, Night: roomsensor.DefaultNightHours, Thresholds: roomsensor.DefaultThresholds(),
	}, team)

	want := team
	want.Name, want.Night = "Name", roomsensor.NightHours{Start: 90, End: 6*60 + 5}
	want.Thresholds = roomsensor.Thresholds{roomsensor.Lux: {High: new(float32(10.1))}, roomsensor.CO2: {Low: new(float32(0))}}
	want.TimeZone, _ = timezone.Load("Australia/Lord_Howe")
	changed, err := f.UpdateTeamSettings(t.Context(), f.TeamID, func(team *roomsensor.TeamSettings) error {
		*team = want
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, want, changed)
	refused := roomsensor.Invalid("name", "no")
	_, err = f.UpdateTeamSettings(t.Context(), f.TeamID, func(team *roomsensor.TeamSettings) error {
		team.Name = "lost"
		return refused
	})
	require.ErrorIs(t, err, refused)
	team, err = f.TeamSettings(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, want.TimeZone.String(), team.TimeZone.String())
	team.TimeZone = want.TimeZone
	require.Equal(t, want, team)

	f.Exec(t, `UPDATE teams SET time_zone = 'Europe/Atlantis', thresholds = '{"co2_ppm": 1, "lux": {"high": "x"}, "x": {}, "temp_c": {"low": 16}}'`)
	team, err = f.TeamSettings(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, time.UTC, team.TimeZone)
	require.Equal(t, roomsensor.Thresholds{roomsensor.Temp: {Low: new(float32(16))}}, team.Thresholds)
	for _, sql := range []string{"night_start = '24:00'", "night_end = '07:00:30'", "night_end = night_start", "thresholds = '[]'"} {
		_, err := f.SQL.Exec(t.Context(), "UPDATE teams SET "+sql)
		require.ErrorContains(t, err, "check constraint", sql)
	}
	_, err = f.TeamSettings(t.Context(), uuid.New())
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.UpdateTeamSettings(t.Context(), uuid.New(), func(*roomsensor.TeamSettings) error { return nil })
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
