package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func TestMaintenanceWindow(t *testing.T) {
	t.Parallel()
	for window, hours := range map[string]map[string]bool{
		"":            {"00:00": false, "03:00": false, "23:59": false},
		"never":       {"00:00": false, "03:00": false},
		"02:00-04:30": {"01:59": false, "02:00": true, "04:29": true, "04:30": false},
		"23:00-01:00": {"22:59": false, "23:00": true, "00:59": true, "01:00": false, "12:00": false},
	} {
		c := config.Maintenance{MaintainWindow: window}
		for hour, want := range hours {
			at, err := time.Parse(time.DateTime, "2026-11-21 "+hour+":00")
			require.NoError(t, err)
			require.Equal(t, want, c.Maintains(at), "%s at %s", window, hour)
			require.Equal(t, want, c.Maintains(at.In(time.FixedZone("far", 5*3600))), "in UTC, whatever the zone")
		}
	}
}

func TestMalformedMaintenance(t *testing.T) {
	t.Parallel()
	for _, window := range []string{"02:00", "2:00-4:00", "02:00-02:00", "02:00-24:30", "02:00/04:00", "off", " 02:00-04:00"} {
		c := goodIngest()
		c.MaintainWindow = window
		requireProblem(t, c.Validate(), "maintain-window")
	}
	for _, after := range []string{"0d", "12h", "1w", "never"} {
		c := goodIngest()
		c.MaintainAfter = after
		requireProblem(t, c.Validate(), "maintain-after")
	}
	require.Equal(t, 14*24*time.Hour, new(config.Maintenance).SettledAfter())
}
