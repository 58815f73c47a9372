package export

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var newYear = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func TestPlanSegments(t *testing.T) {
	t.Parallel()
	year := newYear.AddDate(1, 0, 0)
	for name, test := range map[string]struct {
		to              time.Time
		devices, groups int
		byMonth         bool
		segments        int
		first           time.Duration
	}{
		"one request":          {newYear.Add(7 * day), 100, 1, false, 1, 7 * day},
		"a year":               {year, 1000, 1, false, 5, maxWindow},
		"a year by month":      {year, 1000, 1, true, 12, 31 * day},
		"several groups":       {year, 1000, 2, false, 421, 250 * bucketLength},
		"no device":            {year, 0, 1, false, 5, maxWindow},
		"a device in each row": {newYear.Add(time.Hour), 300_000, 2, false, 12, bucketLength},
		"no time":              {newYear, 5, 1, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			segments := planSegments(newYear, test.to, test.devices, test.groups, test.byMonth)
			require.Len(t, segments, test.segments)
			if test.segments > 0 {
				require.Equal(t, test.first, segments[0].To.Sub(segments[0].From))
			}
		})
	}
}

// The window of an export has no time from which there can be no reading.
func TestRequestWindow(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Request{
		"from": {From: new(time.Time{})}, "length": {Last: 20 * 365 * day},
	} {
		from, to, err := r.window(newYear)
		require.NoError(t, err, name)
		require.Equal(t, Earliest, from, name)
		require.Equal(t, newYear, to, name)
	}
	r := Request{From: new(time.Time{}), To: new(time.Unix(0, 0))}
	_, _, err := r.window(newYear)
	require.ErrorContains(t, err, "ends before 2015")
	r = Request{From: new(newYear)}
	_, _, err = r.window(newYear)
	require.ErrorContains(t, err, "in the future")
}

// requirePartition checks that segments cover a window without gaps, each in at most one month if they are by month.
func requirePartition(t require.TestingT, from, to time.Time, segments []segment) {
	for _, s := range segments {
		require.Equal(t, from, s.From)
		require.True(t, s.From.Before(s.To))
		require.LessOrEqual(t, s.To.Sub(s.From), maxWindow)
		from = s.To
	}
	require.Equal(t, to, from)
}

// Segments divide the window without gaps. No segment of several groups exceeds the limit, and a split ends below it.
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := newYear.Add(time.Duration(rapid.Int64Range(0, int64(40*day)).Draw(t, "from")))
		to := from.Add(time.Duration(rapid.Int64Range(1, int64(200*day)).Draw(t, "length")))
		devices := rapid.IntRange(1, 3000).Draw(t, "devices")
		groups, byMonth := rapid.IntRange(1, 2).Draw(t, "groups"), rapid.Bool().Draw(t, "by month")
		segments := planSegments(from, to, devices, groups, byMonth)
		requirePartition(t, from, to, segments)
		for i, s := range segments {
			if groups > 1 {
				require.LessOrEqual(t, s.buckets()*int64(devices), int64(maxRows))
			}
			if byMonth {
				require.False(t, nextMonth(s.From).Before(s.To))
				require.Equal(t, i > 0 && segments[i-1].To.Month() != segments[i-1].From.Month() &&
					segments[i-1].To.Equal(nextMonth(segments[i-1].From)), i > 0 && s.File != segments[i-1].File)
			}
		}
		checkSplit(t, segments[0], devices)
	})
}

// checkSplit splits a segment as long as it can have too many readings.
func checkSplit(t *rapid.T, s segment, devices int) {
	count := rapid.SampledFrom([]int{0, maxRows + 1, 600_000, countCap, countCap + 1}).Draw(t, "count")
	parts := s.split(devices, count)
	if s.buckets() < 2 {
		require.Nil(t, parts)
		return
	}
	require.GreaterOrEqual(t, len(parts), 2)
	requirePartition(t, s.From, s.To, parts)
	for _, p := range parts {
		require.Less(t, p.buckets(), s.buckets())
		require.Equal(t, s.File, p.File)
	}
}

func TestGridIndex(t *testing.T) {
	t.Parallel()
	at := newYear.Add
	for _, test := range []struct {
		from, to time.Duration
		want     int64
	}{
		{0, bucketLength, 1},
		{0, bucketLength - 1, 1},
		{0, bucketLength + 1, 2},
		{1, bucketLength, 0},
		{1, bucketLength + 1, 1},
		{0, day, 288},
	} {
		require.Equal(t, test.want, segment{From: at(test.from), To: at(test.to)}.buckets(), "%v", test)
	}
}

func TestGroupDevices(t *testing.T) {
	t.Parallel()
	id := func(n int) (id uuid.UUID) {
		id[14], id[15] = byte(n>>8), byte(n)
		return id
	}
	require.Empty(t, groupDevices(nil))
	require.Equal(t, []group{{id(1), id(2)}}, groupDevices([]uuid.UUID{id(2), id(1), id(2)}))
	var many []uuid.UUID
	for i := range 2001 {
		many = append(many, id(2000-i))
	}
	groups := groupDevices(many)
	require.Len(t, groups, 3)
	require.Equal(t, id(0), groups[0][0])
	require.Equal(t, group{id(2000)}, groups[2])
}
