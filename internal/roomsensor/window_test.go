package roomsensor_test

import (
	"errors"
	"math/big"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var now = time.Date(2026, time.March, 10, 12, 30, 0, 123456789, time.UTC)

// A window that ends now has the precision of the database.
func TestWindowUntilNow(t *testing.T) {
	t.Parallel()
	w, err := roomsensor.ReadingWindows.Resolve(roomsensor.WindowRequest{}, now)
	require.NoError(t, err)
	require.Equal(t, now.Truncate(time.Microsecond), w.To)
	require.Equal(t, w.To.AddDate(0, 0, -1), w.From)
}

// The message names a valid form of what the client probably meant, or a window that fits.
func TestParseWindowMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to, last *string
		want           string
	}{
		{new("2026-01-02"), nil, nil, "such as from=2026-01-02T00:00:00Z."},
		{new("2026-01-02T03:04"), nil, nil, "such as from=2026-01-02T03:04:00Z."},
		{new("2026-01-02T03:04:05"), nil, nil, "such as from=2026-01-02T03:04:05Z."},
		{new("2026-01-02 03:04:05"), nil, nil, "such as from=2026-01-02T03:04:05Z."},
		{new("2026-01-02T03:04:05+00:00"), nil, nil, "such as from=2026-01-02T03:04:05Z."},
		{new("2026-01-02T03:04:05.25+02:00"), nil, nil, "such as from=2026-01-02T01:04:05.25Z."},
		{new("2026-01-02T03:04:05 00:00"), nil, nil, "such as from=2026-01-02T03:04:05Z."}, // The + was not encoded.
		{new("2026-01-02t03:04:05z"), nil, nil, "such as from=2026-01-02T03:04:05Z."},
		{new("0000-01-01T00:00:00+01:00"), nil, nil, "for example 2026-01-31T08:00:00Z."}, // Before the year 0 in UTC.
		{new("1770000000"), nil, nil, "for example 2026-01-31T08:00:00Z."},
		{new("2026-01-01T00:00:00Z"), new("2026-01-02"), nil, "such as to=2026-01-02T00:00:00Z."},
		{new("2025-01-01T00:00:00.5Z"), nil, nil, "Ask for from=2025-01-01T00:00:00.5Z&to=2025-04-01T00:00:00.5Z first"},
		{nil, nil, new("91d"), "Ask for last=90d"},
		{nil, nil, new("1w"), "such as last=7d."},
		{nil, nil, new("2 weeks"), "such as last=14d."},
		{nil, nil, new("7D"), "such as last=7d."},
		{nil, nil, new("007D"), "such as last=7d."},
		{nil, nil, new("90min"), "such as last=90m."},
		{nil, nil, new("20w"), "for example last=90m, last=24h or last=7d."}, // 140 days are too many.
		{nil, nil, new("00W"), "for example last=90m, last=24h or last=7d."},
		{nil, nil, new("0d"), "for example last=90m, last=24h or last=7d."},
		{nil, nil, new("90"), "for example last=90m, last=24h or last=7d."},
	} {
		request, err := roomsensor.ReadingWindows.Parse(test.from, test.to, test.last)
		if err == nil {
			_, err = roomsensor.ReadingWindows.Resolve(request, now)
		}
		require.ErrorContains(t, err, test.want)
	}
}

func TestWindowIntersect(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, time.January, n, 0, 0, 0, 0, time.UTC) }
	asked := roomsensor.Window{From: day(3), To: day(6)}
	open := roomsensor.Assignment{StartedAt: day(5)}
	closed := roomsensor.Assignment{StartedAt: day(1), EndedAt: new(day(3))}

	require.Equal(t, roomsensor.Window{From: day(5), To: day(6)}, asked.Intersect(open.Window()))
	require.True(t, asked.Intersect(closed.Window()).Empty(), "an assignment does not include its end")
	require.Equal(t, roomsensor.Forever, open.Window().To)
}

// FuzzLast checks any length against the form of the OpenAPI document (decision 5).
func FuzzLast(f *testing.F) {
	for _, text := range []string{
		"24h", "90d", "91d", "129600m", "129601m", "0d", "h", "1H", "1w", "+1h", "99999999999999999999999d",
		"000000000000000000000000001m", "-1h", "1.5h", "90", "", "١h", "1h30m",
	} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^0*([1-9][0-9]*)([mhd])$`)
	f.Fuzz(func(t *testing.T, text string) {
		request, err := roomsensor.ReadingWindows.Parse(nil, nil, &text)
		parts := form.FindStringSubmatch(text)
		if parts == nil {
			var refused *roomsensor.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "last", refused.Param)
			return
		}
		n, ok := new(big.Int).SetString(parts[1], 10)
		require.True(t, ok)
		n.Mul(n, big.NewInt(map[string]int64{"m": 1, "h": 60, "d": 1440}[parts[2]]))
		if n.Cmp(big.NewInt(90*1440)) > 0 {
			var refused *roomsensor.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, roomsensor.CodeTimeRangeTooWide, refused.Code)
			return
		}
		require.NoError(t, err)
		require.Equal(t, time.Duration(n.Int64())*time.Minute, request.Last)
	})
}

func FuzzParseWindow(f *testing.F) {
	f.Add("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "24h")
	f.Fuzz(func(t *testing.T, from, to, last string) {
		for _, l := range []*string{nil, &last} {
			request, err := roomsensor.ReadingWindows.Parse(&from, &to, l)
			if err == nil {
				var w roomsensor.Window
				if w, err = roomsensor.ReadingWindows.Resolve(request, now); err == nil {
					require.False(t, w.Empty())
					require.LessOrEqual(t, w.To.Sub(w.From), roomsensor.MaxWindow)
				}
			}
			var refused *roomsensor.Error
			require.True(t, err == nil || errors.As(err, &refused))
		}
	})
}
