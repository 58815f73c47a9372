package aggregate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
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

// TestCalendarDays checks the edges of local days: those of 23, 24.5 and 25 hours, dates without a midnight, dates that do
// not exist, and a clock that is set back over midnight.
func TestCalendarDays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, at, from, to string }{
		{"UTC", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"UTC", "2026-03-29T00:00:00Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"UTC", "2026-03-29T23:59:59.999999Z", "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"America/New_York", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"America/New_York", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-05T00:00:00Z", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"}, // 24.5 hours
		{"Australia/Lord_Howe", "2026-10-04T00:00:00Z", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"}, // 23.5 hours
		{"Asia/Kathmandu", "2026-01-01T00:00:00Z", "2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z"},
		{"America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // begins at 01:00
		{"America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"}, // 23:00 twice
		{"Asia/Beirut", "2026-03-29T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"},       // begins at 01:00
		{"America/Havana", "2026-11-01T04:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},    // midnight twice
		{"Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}, // the 31st; no 30th
		// Set back from 00:01 to 23:01: the 30th begins for a minute before the 29th resumes for another hour.
		{"America/St_Johns", "2005-10-30T02:30:30Z", "2005-10-30T02:30:00Z", "2005-10-31T03:30:00Z"},
		{"America/St_Johns", "2005-10-30T03:00:00Z", "2005-10-30T02:30:00Z", "2005-10-31T03:30:00Z"},
		{"America/St_Johns", "2005-10-30T02:29:59Z", "2005-10-29T02:30:00Z", "2005-10-30T02:30:00Z"},
		{"Europe/Berlin", "1893-03-31T12:00:00Z", "1893-03-30T23:06:32Z", "1893-03-31T23:06:32Z"}, // begins at 00:06:28
		{"Europe/Berlin", "2500-07-01T12:00:00Z", "2500-06-30T22:00:00Z", "2500-07-01T22:00:00Z"},
		{"Europe/Berlin", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "0000-01-01T23:06:32Z"}, // cut off
		{"America/New_York", "9999-12-31T23:00:00Z", "9999-12-31T05:00:00Z", "9999-12-31T23:59:59.999999Z"},
	} {
		calendar := aggregate.NewCalendar(aggregate.Daily, zone(t, test.zone))
		want := roomsensor.Window{From: instant(t, test.from), To: instant(t, test.to)}
		require.Equal(t, want, calendar.Bucket(instant(t, test.at)), "%s at %s", test.zone, test.at)
	}
}

// TestCalendarHours checks that hours are UTC hours in every zone (A1.3).
func TestCalendarHours(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Asia/Kathmandu", "Australia/Lord_Howe"} {
		calendar := aggregate.NewCalendar(aggregate.Hourly, zone(t, name))
		want := roomsensor.Window{From: instant(t, "2026-04-04T14:00:00Z"), To: instant(t, "2026-04-04T15:00:00Z")}
		require.Equal(t, want, calendar.Bucket(instant(t, "2026-04-04T14:00:00Z")))
		require.Equal(t, want, calendar.Bucket(instant(t, "2026-04-04T14:59:59.999999Z")))
	}
}

// TestCalendarLeapYear checks the days around the end of leap years in every zone. On their last day, the end of
// time.Time.ZoneBounds has passed.
func TestCalendarLeapYear(t *testing.T) {
	t.Parallel()
	for _, name := range timezone.Names() {
		location := zone(t, name)
		calendar := aggregate.NewCalendar(aggregate.Daily, location)
		for _, year := range []int{2023, 2024, 2028, 2400} {
			for date := 28; date < 36; date++ {
				from := time.Date(year, time.December, date, 0, 0, 0, 0, location)
				want := roomsensor.Window{From: from.UTC(), To: time.Date(year, time.December, date+1, 0, 0, 0, 0, location).UTC()}
				require.Equal(t, want, calendar.Bucket(from.Add(time.Hour)), "%s on %s", name, dateOf(from, location))
			}
		}
	}
}

// TestCalendarProperty checks for any zone and window that the buckets partition the time, that a day begins where no
// instant before it has its date or a later one, and that both directions have the same buckets.
func TestCalendarProperty(t *testing.T) {
	t.Parallel()
	names := append(timezone.Names(), "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
	rapid.Check(t, func(t *rapid.T) {
		location := zone(t, rapid.SampledFrom(names).Draw(t, "zone"))
		interval := rapid.SampledFrom([]aggregate.Interval{aggregate.Hourly, aggregate.Daily}).Draw(t, "interval")
		calendar := aggregate.NewCalendar(interval, location)
		from := time.UnixMicro(rapid.Int64Range(instant(t, "1840-01-01T00:00:00Z").UnixMicro(),
			instant(t, "2100-01-01T00:00:00Z").UnixMicro()).Draw(t, "from")).UTC()
		w := roomsensor.Window{From: from, To: from.Add(time.Duration(rapid.Int64Range(1, int64(40*24*time.Hour)).Draw(t, "length")))}
		w.To = w.To.Truncate(time.Microsecond).Add(time.Microsecond)
		buckets := slices.Collect(calendar.Buckets(w))
		require.False(t, buckets[0].From.After(w.From))
		require.True(t, buckets[0].To.After(w.From))
		for i, bucket := range buckets {
			require.True(t, bucket.From.Before(bucket.To))
			require.True(t, bucket.From.Before(w.To))
			if i > 0 {
				require.Equal(t, buckets[i-1].To, bucket.From)
			}
			if interval == aggregate.Daily {
				date := dateOf(bucket.From, location)
				for before := bucket.From.Add(-time.Second); before.After(bucket.From.Add(-26 * time.Hour)); before = before.Add(-13 * time.Minute) {
					require.Less(t, dateOf(before, location), date, "%s before %s", before, bucket.From)
				}
			}
		}
		require.False(t, buckets[len(buckets)-1].To.Before(w.To))
		newest := calendar.Newest(w, len(buckets)+1)
		slices.Reverse(newest)
		require.Equal(t, buckets, newest)
		require.Equal(t, buckets[len(buckets)-1:], calendar.Newest(w, 1))
	})
}

func dateOf(at time.Time, location *time.Location) string {
	return at.In(location).Format(time.DateOnly)
}
