package airquality_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
)

func zone(t require.TestingT, name string) *time.Location {
	location, ok := timezone.Load(name)
	require.True(t, ok, name)
	return location
}

func instant(t require.TestingT, text string) time.Time {
	at, ok := roomsensor.ParseTime(text)
	require.True(t, ok, text)
	return at
}

// nightHours parses hours that are valid.
func nightHours(t require.TestingT, text string) airquality.NightHours {
	hours, err := airquality.ParseNightHours(text)
	require.NoError(t, err)
	require.Equal(t, text, hours.String())
	return hours
}

func TestParseNightHours(t *testing.T) {
	t.Parallel()
	require.Equal(t, airquality.DefaultNightHours, nightHours(t, "22:00-07:00"))
	require.Equal(t, airquality.NightHours{Start: 5, End: 23*60 + 59}, nightHours(t, "00:05-23:59"))
	for text, want := range map[string]string{
		"22:00": "has the form 22:00-07:00", "": "has the form 22:00-07:00", "24:00-07:00": "start of the night", "22:60-07:00": "start of the night",
		"-07:00": "start of the night", "22:00-": "end of the night", "22:00-7": "end of the night", "22:00-07:00-08:00": "end of the night",
		"22:00-22:00": "must not end at the time at which it begins",
	} {
		_, err := airquality.ParseNightHours(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestNight checks the windows of nights, also those in which the clocks are set: each has every instant at which they
// show a time of the night, and none of the next night.
func TestNight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, hours, date, from, to string }{
		{"UTC", "22:00-07:00", "2026-11-21", "2026-11-21T22:00:00Z", "2026-11-22T07:00:00Z"},
		{"UTC", "01:00-06:30", "2026-11-21", "2026-11-21T01:00:00Z", "2026-11-21T06:30:00Z"},
		{"Asia/Kathmandu", "22:00-07:00", "2026-12-31", "2026-12-31T16:15:00Z", "2027-01-01T01:15:00Z"},
		{"Europe/Berlin", "22:00-07:00", "2026-03-28", "2026-03-28T21:00:00Z", "2026-03-29T05:00:00Z"},       // 8 hours
		{"Europe/Berlin", "22:00-07:00", "2026-10-24", "2026-10-24T20:00:00Z", "2026-10-25T06:00:00Z"},       // 10 hours
		{"Europe/Berlin", "22:00-02:30", "2026-10-24", "2026-10-24T20:00:00Z", "2026-10-25T01:30:00Z"},       // The second 02:30.
		{"Europe/Berlin", "02:30-07:00", "2026-10-25", "2026-10-25T00:30:00Z", "2026-10-25T06:00:00Z"},       // The first 02:30.
		{"Europe/Berlin", "02:30-07:00", "2026-03-29", "2026-03-29T01:00:00Z", "2026-03-29T05:00:00Z"},       // 02:30 is skipped.
		{"Europe/Berlin", "22:00-02:30", "2026-03-28", "2026-03-28T21:00:00Z", "2026-03-29T01:00:00Z"},       // So it is here.
		{"Europe/Berlin", "02:10-02:50", "2026-03-29", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},       // Empty.
		{"Europe/Berlin", "02:30-02:00", "2026-10-24", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},       // The next one begins.
		{"Australia/Lord_Howe", "22:00-07:00", "2026-04-04", "2026-04-04T11:00:00Z", "2026-04-04T20:30:00Z"}, // 9.5 hours
		{"Pacific/Apia", "22:00-07:00", "2011-12-29", "2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z"},        // The 30th does not exist.
	} {
		date, err := time.Parse(time.DateOnly, test.date)
		require.NoError(t, err)
		night := nightHours(t, test.hours).Night(date.Add(13*time.Hour), zone(t, test.zone))
		require.Equal(t, roomsensor.Window{From: instant(t, test.from), To: instant(t, test.to)}, night.Window, "%+v", test)
		require.Equal(t, date, night.Date)
	}
}

// TestLastNight checks that the last night is the newest one that has begun, in the team's zone.
func TestLastNight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, hours, now, want string }{
		{"UTC", "22:00-07:00", "2026-11-22T21:59:59Z", "2026-11-21"},
		{"UTC", "22:00-07:00", "2026-11-22T22:00:00Z", "2026-11-22"},
		{"UTC", "22:00-07:00", "2026-11-22T03:00:00Z", "2026-11-21"},
		{"UTC", "00:00-06:00", "2026-11-22T00:00:00Z", "2026-11-22"},
		{"Pacific/Kiritimati", "22:00-07:00", "2026-11-22T08:00:00Z", "2026-11-22"},
		{"Pacific/Pago_Pago", "22:00-07:00", "2026-11-22T08:59:00Z", "2026-11-20"},
	} {
		hours, in := nightHours(t, test.hours), zone(t, test.zone)
		night := hours.Last(instant(t, test.now), in)
		require.Equal(t, test.want, night.Date.Format(time.DateOnly), "%+v", test)
		before := hours.Before(night, in, 14)
		require.Len(t, before, 14)
		require.Equal(t, night.Date.AddDate(0, 0, -1), before[0].Date)
		require.Equal(t, night.Date.AddDate(0, 0, -14), before[13].Date)
	}
}
