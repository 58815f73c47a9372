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

func TestParseWindow(t *testing.T) {
	t.Parallel()
	const today = "2026-03-10T12:30:00.123456Z"
	tests := []struct {
		name           string
		from, to, last *string
		wantFrom       string
		wantTo         string
	}{
		{"no time parameter is the last 24 hours", nil, nil, nil, "2026-03-09T12:30:00.123456Z", today},
		{"from alone ends now", new("2026-03-01T00:00:00Z"), nil, nil, "2026-03-01T00:00:00Z", today},
		{"to alone is the 24 hours before it", nil, new("2026-03-01T00:00:00Z"), nil, "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"to alone at the first time", nil, new("0000-01-01T00:00:00Z"), nil, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"to alone on the first day", nil, new("0000-01-01T12:00:00Z"), nil, "0000-01-01T00:00:00Z", "0000-01-01T12:00:00Z"},
		{"from and to", new("2026-01-01T00:00:00Z"), new("2026-01-01T00:00:00.000001Z"), nil, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z"},
		{"exactly 90 days", new("2026-01-01T00:00:00Z"), new("2026-04-01T00:00:00Z"), nil, "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z"},
		{"last in minutes", nil, nil, new("90m"), "2026-03-10T11:00:00.123456Z", today},
		{"last in hours", nil, nil, new("24h"), "2026-03-09T12:30:00.123456Z", today},
		{"last of 90 days", nil, nil, new("90d"), "2025-12-10T12:30:00.123456Z", today},
		{"last of 90 days in minutes", nil, nil, new("129600m"), "2025-12-10T12:30:00.123456Z", today},
		{"last overrides from and to, even if they are malformed", new("x"), new("y"), new("1h"), "2026-03-10T11:30:00.123456Z", today},
		{"a window in the future", new("2027-01-01T00:00:00Z"), new("2027-01-02T00:00:00Z"), nil, "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			request, err := roomsensor.ReadingWindows.Parse(test.from, test.to, test.last)
			require.NoError(t, err)
			w, err := roomsensor.ReadingWindows.Resolve(request, now)
			require.NoError(t, err)
			require.Equal(t, test.wantFrom, roomsensor.FormatTime(w.From))
			require.Equal(t, test.wantTo, roomsensor.FormatTime(w.To))
		})
	}
}

func TestParseWindowInvalid(t *testing.T) {
	t.Parallel()
	const invalid, tooWide = roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide
	tests := []struct {
		name           string
		from, to, last *string
		code           roomsensor.Code
		param          string
	}{
		{"from with an offset", new("2026-01-01T00:00:00+00:00"), nil, nil, invalid, "from"},
		{"from empty", new(""), nil, nil, invalid, "from"},
		{"to malformed", new("2026-01-01T00:00:00Z"), new("tomorrow"), nil, invalid, "to"},
		{"to equal to from", new("2026-01-01T00:00:00Z"), new("2026-01-01T00:00:00Z"), nil, invalid, "to"},
		{"to before from", new("2026-01-02T00:00:00Z"), new("2026-01-01T00:00:00Z"), nil, invalid, "to"},
		{"from in the future without to", new("2026-03-11T00:00:00Z"), nil, nil, invalid, "from"},
		{"a microsecond above 90 days", new("2026-01-01T00:00:00Z"), new("2026-04-01T00:00:00.000001Z"), nil, tooWide, "from"},
		{"from alone, more than 90 days ago", new("2025-01-01T00:00:00Z"), nil, nil, tooWide, "from"},
		{"a window of millennia", new("0001-01-01T00:00:00Z"), new("9999-01-01T00:00:00Z"), nil, tooWide, "from"},
		{"last above 90 days", nil, nil, new("91d"), tooWide, "last"},
		{"last a minute above 90 days", nil, nil, new("129601m"), tooWide, "last"},
		{"last beyond any integer", nil, nil, new("99999999999999999999999d"), tooWide, "last"},
		{"last of zero", nil, nil, new("0d"), invalid, "last"},
		{"last negative", nil, nil, new("-1h"), invalid, "last"},
		{"last with a sign", nil, nil, new("+1h"), invalid, "last"},
		{"last with a fraction", nil, nil, new("1.5h"), invalid, "last"},
		{"last without a unit", nil, nil, new("90"), invalid, "last"},
		{"last in weeks", nil, nil, new("1w"), invalid, "last"},
		{"last empty", nil, nil, new(""), invalid, "last"},
		{"last without a number", nil, nil, new("h"), invalid, "last"},
		{"last in capitals", nil, nil, new("1H"), invalid, "last"},
		{"last in the form of a Go duration", nil, nil, new("1h30m"), invalid, "last"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			request, err := roomsensor.ReadingWindows.Parse(test.from, test.to, test.last)
			if err == nil {
				_, err = roomsensor.ReadingWindows.Resolve(request, now)
			}
			var refused *roomsensor.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.code, refused.Code)
			require.Equal(t, test.param, refused.Param)
			require.NotEmpty(t, refused.Message)
		})
	}
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
	for _, text := range []string{"24h", "90d", "91d", "0d", "000000000000000000000000001m", "-1h", "1.5h", "90", "", "١h", "1h30m"} {
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
