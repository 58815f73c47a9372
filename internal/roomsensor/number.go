package roomsensor

import (
	"math"
	"strconv"
)

// AppendNumber appends the shortest decimal form that reads back as the same
// 32-bit value, never with an exponent (decision 1). What a sensor measures has
// few digits, for which that form is found in a third of the time.
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

// wholeAt is the number of at most six digits that, divided by scale, reads back
// as x. There is one at most: a float32 keeps all numbers of six digits apart.
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

// appendThousandths takes what has more than one digit after the point.
func appendThousandths(dst []byte, n uint32) []byte {
	dst = strconv.AppendUint(dst, uint64(n/1000), 10)
	dst = append(dst, '.', byte('0'+n/100%10), byte('0'+n/10%10))
	if n%10 == 0 {
		return dst
	}
	return append(dst, byte('0'+n%10))
}
