package roomsensor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

func TestParseLocal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, text, want string }{
		{"UTC", "2026-11-22T14:05", "2026-11-22T14:05:00Z"},
		{"Europe/Berlin", "2026-11-22T14:05:59", "2026-11-22T13:05:59Z"},
		{"Asia/Kathmandu", "2026-11-22T14:05", "2026-11-22T08:20:00Z"},
		{"Europe/Berlin", "2026-03-29T01:59", "2026-03-29T00:59:00Z"},
		{"Europe/Berlin", "2026-03-29T02:30", "The time 02:30 on 29 Mar 2026 does not exist in Europe/Berlin, because the clock is set forward over it. Enter an earlier or a later time."},
		{"Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:59", "2026-10-24T23:59:00Z"},
		{"Europe/Berlin", "2026-10-25T02:00", "The time 02:00 on 25 Oct 2026 occurs twice in Europe/Berlin, because the clock is set back over it. Enter a time before or after the repeated hour."},
		{"Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "The time 01:45 on 5 Apr 2026 occurs twice in Australia/Lord_Howe, because the clock is set back over it. Enter a time before or after the repeated hour."},
		{"Pacific/Apia", "2011-12-30T12:00", "The time 12:00 on 30 Dec 2011 does not exist in Pacific/Apia, because the clock is set forward over it. Enter an earlier or a later time."},
		{"UTC", "", "Enter a date and a time, such as 2026-01-31T08:00."},
		{"UTC", "2026-02-30T08:00", "Enter a date and a time, such as 2026-01-31T08:00."},
		{"UTC", "2026-11-22T14:05Z", "Enter a date and a time, such as 2026-01-31T08:00."},
		{"UTC", "0000-01-01T00:00", "Enter a date and a time, such as 2026-01-31T08:00."},
	} {
		zone, ok := timezone.Load(test.zone)
		require.True(t, ok)
		at, err := roomsensor.ParseLocal("at", test.text, zone)
		got := roomsensor.FormatTime(at)
		if err != nil {
			var invalid *roomsensor.Error
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "at", invalid.Param)
			got = invalid.Message
		}
		require.Equal(t, test.want, got, test.text)
	}
}

// TestParseLocalZones checks around all changes of the clock in a year that what FormatLocal returns is read back, unless
// the time occurs twice.
func TestParseLocalZones(t *testing.T) {
	t.Parallel()
	for _, name := range timezone.Names() {
		zone, ok := timezone.Load(name)
		require.True(t, ok)
		for at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC); ; {
			_, change := at.In(zone).ZoneBounds()
			if change.IsZero() || change.Year() > 2026 {
				break
			}
			at = change.UTC()
			for _, around := range []time.Duration{-3 * time.Hour, -time.Minute, 0, time.Minute, 3 * time.Hour} {
				want := at.Add(around)
				got, err := roomsensor.ParseLocal("at", roomsensor.FormatLocal(want, zone), zone)
				if err != nil {
					require.ErrorContains(t, err, "occurs twice", "%s %s", name, want)
					continue
				}
				require.Equal(t, want, got, name)
			}
		}
	}
}
