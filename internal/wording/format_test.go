package wording_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/wording"
)

var (
	european = wording.Format{}
	american = wording.Format{Fahrenheit: true, Hour12: true, MonthFirst: true}
)

func TestFormatNumber(t *testing.T) {
	t.Parallel()
	for celsius, want := range map[float32][2]string{
		21.5: {"21.5\u00a0°C", "70.7\u00a0°F"}, 20.44: {"20.4\u00a0°C", "68.8\u00a0°F"},
		0: {"0.0\u00a0°C", "32.0\u00a0°F"}, -0.04: {"0.0\u00a0°C", "31.9\u00a0°F"},
		-17.8: {"−17.8\u00a0°C", "0.0\u00a0°F"}, -17.9: {"−17.9\u00a0°C", "−0.2\u00a0°F"}, -40: {"−40.0\u00a0°C", "−40.0\u00a0°F"},
	} {
		require.Equal(t, want[0], european.Number(roomsensor.Temp, celsius))
		require.Equal(t, want[1], american.Number(roomsensor.Temp, celsius))
	}
	require.Equal(t, "612\u00a0ppm", american.Number(roomsensor.CO2, 612), "only temperatures differ")
}

// TestFormatLimit checks that a limit has all digits that people entered, and no others.
func TestFormatLimit(t *testing.T) {
	t.Parallel()
	for celsius, want := range map[float32]string{24: "75.2\u00a0°F", 24.3: "75.74\u00a0°F", 24.35: "75.83\u00a0°F", -20: "-4\u00a0°F"} {
		require.Equal(t, want, american.Limit(roomsensor.Temp, celsius))
	}
	require.Equal(t, "24.3\u00a0°C", european.Limit(roomsensor.Temp, 24.3))
}

func TestFormatTime(t *testing.T) {
	t.Parallel()
	for clock, want := range map[time.Duration]string{
		0: "12:00 AM", 9*time.Hour + 5*time.Minute: "9:05 AM", 12 * time.Hour: "12:00 PM", 23*time.Hour + 59*time.Minute: "11:59 PM",
	} {
		at := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC).Add(clock)
		require.Equal(t, want, american.Time(at, "15:04"))
		require.Equal(t, want, american.Clock(roomsensor.Clock(clock/time.Minute)))
		require.Equal(t, at.Format("Mon 2 Jan 2006, 15:04"), european.Time(at, "Mon 2 Jan 2006, 15:04"))
		require.Equal(t, "Mon Nov 2, 2026, "+want, american.Time(at, "Mon 2 Jan 2006, 15:04"))
	}
	at := time.Date(2026, 11, 2, 15, 4, 9, 0, time.UTC)
	require.Equal(t, "3:04:09 PM", american.Time(at, "15:04:05"))
	require.Equal(t, "Mon 2 Nov, 3:04 PM", wording.Format{Hour12: true}.Time(at, "Mon 2 Jan, 15:04"))
	require.Equal(t, "Nov 2", wording.Format{MonthFirst: true}.Time(at, "2 Jan"))
}

// TestFormatOf checks that the browser decides only what a person did not choose.
func TestFormatOf(t *testing.T) {
	t.Parallel()
	for languages, want := range map[string]wording.Format{
		"": european, "en": european, "en-GB,en-US;q=0.9": european, "de-AT": european, "en-US": american, "EN-us,en;q=0.9": american,
	} {
		require.Equal(t, want, wording.FormatOf(roomsensor.FormatChoice{}, languages), languages)
	}
	yes, no := true, false
	require.Equal(t, wording.Format{Fahrenheit: true}, wording.FormatOf(roomsensor.FormatChoice{Fahrenheit: &yes}, ""))
	require.Equal(t, wording.Format{Fahrenheit: true, MonthFirst: true}, wording.FormatOf(roomsensor.FormatChoice{Hour12: &no}, "en-US"))
}

// TestAlertDetail checks that an alert about bad air is stored without a format, and said in that of its reader.
func TestAlertDetail(t *testing.T) {
	t.Parallel()
	a := alerting.Alert{Rule: alerting.RuleBad, Name: "Room"}
	a.Detail = wording.AlertDetail(airquality.Cause{Metric: roomsensor.Temp, High: true, Limit: 27})
	require.Equal(t, "temp_c above 27", a.Detail)
	require.Equal(t, "Room has bad air: Temperature above 27\u00a0°C", european.AlertText(&a))
	require.Equal(t, "Room has bad air: Temperature above 80.6\u00a0°F", american.AlertText(&a))
}
