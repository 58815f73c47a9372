package roomsensor

import (
	"bytes"
	"time"
)

// Forever stands for the end that an open interval does not have yet. It is
// the last microsecond that the API's form of a timestamp can print.
var Forever = time.Date(9999, time.December, 31, 23, 59, 59, 999999000, time.UTC)

// AppendTime appends an instant as RFC 3339 UTC with Z, with no fraction when it
// is zero and at most microseconds (decision 1). A page holds 2,000 of them, so
// the digits are put in place here, in a quarter of the time of a layout.
func AppendTime(dst []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 { // No client can be meant by it; the database knows such years.
		return at.AppendFormat(dst, "2006-01-02T15:04:05.999999Z")
	}
	hour, minute, second := at.Clock()
	dst = appendTwo(appendTwo(dst, year/100), year%100)
	dst = appendTwo(append(dst, '-'), int(month))
	dst = appendTwo(append(dst, '-'), day)
	dst = appendTwo(append(dst, 'T'), hour)
	dst = appendTwo(append(dst, ':'), minute)
	dst = appendTwo(append(dst, ':'), second)
	return append(appendMicroseconds(dst, at.Nanosecond()/int(time.Microsecond)), 'Z')
}

// pairs are the numbers from 00 to 99.
const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

func appendTwo(dst []byte, n int) []byte { return append(dst, pairs[2*n:2*n+2]...) }

// appendMicroseconds appends a fraction of a second without zeros at its end.
func appendMicroseconds(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	dst = appendTwo(appendTwo(appendTwo(append(dst, '.'), n/10_000), n/100%100), n%100)
	return bytes.TrimRight(dst, "0")
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
