package roomsensor

import (
	"math"
	"strconv"
)

// AppendNumber appends the shortest decimal form that reads back as the same
// 32-bit value, never with an exponent (decision 1). What a sensor measures has
// few digits, for which that form is found in a third of the time.
func AppendNumber(dst []byte, x float32) []byte {
	// A float32 keeps six digits apart: of all numbers that read back as x, one
	// alone has no more than six.
	positive := math.Abs(float64(x))
	if tenths := uint32(positive*10 + 0.5); positive < 1e5 && float32(float64(tenths)/10) == float32(positive) {
		return appendTenths(appendSign(dst, x), tenths)
	}
	if thousandths := uint32(positive*1000 + 0.5); positive < 1e3 && float32(float64(thousandths)/1000) == float32(positive) {
		return appendThousandths(appendSign(dst, x), thousandths)
	}
	return strconv.AppendFloat(dst, float64(x), 'f', -1, 32)
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

// appendThousandths takes what has more than one digit after the point.
func appendThousandths(dst []byte, n uint32) []byte {
	dst = strconv.AppendUint(dst, uint64(n/1000), 10)
	dst = append(dst, '.', byte('0'+n/100%10), byte('0'+n/10%10))
	if n%10 == 0 {
		return dst
	}
	return append(dst, byte('0'+n%10))
}
