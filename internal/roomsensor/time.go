package roomsensor

import "time"

// Forever stands for the end that an open interval does not have yet. It is
// the last microsecond that the API's form of a timestamp can print.
var Forever = time.Date(9999, time.December, 31, 23, 59, 59, 999999000, time.UTC)

// AppendTime appends an instant as RFC 3339 UTC with Z, with no fraction when it
// is zero and at most microseconds (decision 1). The layout is one for which the
// standard library has a way of its own, in half the time of any other.
func AppendTime(dst []byte, at time.Time) []byte {
	at = at.Add(-time.Duration(at.Nanosecond() % int(time.Microsecond)))
	return at.UTC().AppendFormat(dst, time.RFC3339Nano)
}

// FormatTime is AppendTime as a string.
func FormatTime(at time.Time) string { return string(AppendTime(nil, at)) }

// ParseTime reads YYYY-MM-DDTHH:MM:SS[.1 to 9 digits]Z and nothing else
// (decision 2): time.Parse alone would also take an offset, a comma before the
// fraction and hours of one digit. Digits past the microsecond are cut off.
func ParseTime(text string) (time.Time, bool) {
	if !hasTimeShape(text) {
		return time.Time{}, false
	}
	at, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil {
		return time.Time{}, false // A day or an hour that does not exist.
	}
	return at.Truncate(time.Microsecond), true
}

// hasTimeShape reports whether text has the digits and marks of a timestamp in
// their places; whether the day exists is not looked at.
func hasTimeShape(text string) bool {
	const whole, longest = "dddd-dd-ddTdd:dd:dd", len("2006-01-02T15:04:05.999999999Z")
	if len(text) < len(whole)+1 || len(text) > longest || text[len(text)-1] != 'Z' {
		return false
	}
	for i := range len(whole) {
		if !matchesMark(text[i], whole[i]) {
			return false
		}
	}
	fraction := text[len(whole) : len(text)-1]
	if fraction == "" {
		return true
	}
	return fraction[0] == '.' && len(fraction) > 1 && allDigits(fraction[1:])
}

func matchesMark(c, mark byte) bool {
	if mark == 'd' {
		return '0' <= c && c <= '9'
	}
	return c == mark
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
