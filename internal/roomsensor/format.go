package roomsensor

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// Forever is the end of an interval that has no end yet: the last microsecond that the timestamps of the API can
// express.
var Forever = time.Date(9999, time.December, 31, 23, 59, 59, 999999000, time.UTC)

// AppendTime appends a time in RFC 3339 form, in UTC with Z, with at most six digits of a fraction and none if it is
// zero (decision 1). A page has 2,000 of them; this takes a quarter of the time of time.AppendFormat.
func AppendTime(dst []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 { // Clients never see such years, but the database can store them.
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

// pairs contains the numbers from 00 to 99.
const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" + "70717273747576777879" +
	"80818283848586878889" + "90919293949596979899"

func appendTwo(dst []byte, n int) []byte { return append(dst, pairs[2*n:2*n+2]...) }

// appendMicroseconds appends a fraction of a second without trailing zeros.
func appendMicroseconds(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	dst = appendTwo(appendTwo(appendTwo(append(dst, '.'), n/10_000), n/100%100), n%100)
	return bytes.TrimRight(dst, "0")
}

// FormatTime returns what AppendTime appends.
func FormatTime(at time.Time) string { return string(AppendTime(nil, at)) }

// ParseTime parses YYYY-MM-DDTHH:MM:SS[.1 to 9 digits]Z only (decision 2): time.Parse alone would also accept an
// offset, a comma before the fraction and hours of one digit. It truncates to microseconds.
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

// hasTimeShape reports whether text has the digits and separators of a timestamp. It does not check that the day
// exists.
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

// AppendNumber appends the shortest decimal form that parses to the same 32-bit value, without an exponent (decision
// 1). Sensor values have few digits; for those, this takes a third of the time of strconv.
func AppendNumber(dst []byte, x float32) []byte {
	positive := math.Abs(float64(x))
	if tenths, ok := wholeAt(positive, 10); ok {
		return appendTenths(appendSign(dst, x), tenths)
	}
	if thousandths, ok := wholeAt(positive, 1000); ok {
		return appendThousandths(appendSign(dst, x), thousandths)
	}
	return strconv.AppendFloat(dst, float64(x), 'f', -1, 32)
}

// wholeAt returns the number of at most six digits that, divided by scale, parses to x. There is at most one, because
// float32 distinguishes all numbers of six digits.
func wholeAt(x, scale float64) (n uint32, ok bool) {
	if x*scale >= 1e6 {
		return 0, false
	}
	n = uint32(x*scale + 0.5)
	return n, float32(float64(n)/scale) == float32(x)
}

func appendSign(dst []byte, x float32) []byte {
	if math.Signbit(float64(x)) {
		return append(dst, '-')
	}
	return dst
}

func appendTenths(dst []byte, n uint32) []byte {
	dst = strconv.AppendUint(dst, uint64(n/10), 10)
	if n%10 == 0 {
		return dst
	}
	return append(dst, '.', byte('0'+n%10))
}

// appendThousandths appends n/1000, which has more than one digit after the point.
func appendThousandths(dst []byte, n uint32) []byte {
	dst = strconv.AppendUint(dst, uint64(n/1000), 10)
	dst = append(dst, '.', byte('0'+n/100%10), byte('0'+n/10%10))
	if n%10 == 0 {
		return dst
	}
	return append(dst, byte('0'+n%10))
}

// FormatChoice is how a person chose to read temperatures, times of day and dates. Nil means as the browser says.
type FormatChoice struct{ Fahrenheit, Hour12, MonthFirst *bool }
