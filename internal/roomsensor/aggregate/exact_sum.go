package aggregate

import (
	"math"
	"math/big"

	"roomsensor/internal/roomsensor"
)

// exactSum adds numbers without a rounding error, so that a sum does not depend on the order of the numbers. It holds
// the sum as a number and the rounding errors of the additions so far, which are numbers themselves (TwoSum, Knuth).
// The values of a sensor rarely have any. The zero exactSum is 0.
type exactSum struct {
	high, low float64
	rest      []float64
}

// add adds a finite number.
func (s *exactSum) add(x float64) {
	var lost float64
	if s.high, lost = twoSum(s.high, x); lost == 0 {
		return
	}
	if s.low, lost = twoSum(s.low, lost); lost != 0 {
		s.rest = append(s.rest, lost)
	}
}

// twoSum returns the rounded sum of two numbers and the rounding error, which together are the exact sum.
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	rounded := sum - a
	return sum, (a - (sum - rounded)) + (b - rounded)
}

// sumBits is the precision in bits that holds any sum: those of readings are multiples of 2^-149 and below 2^160.
const sumBits = 320

// value returns the sum, rounded once.
func (s *exactSum) value() float64 {
	if len(s.rest) == 0 {
		return s.high + s.low
	}
	sum := new(big.Float).SetPrec(sumBits).SetFloat64(s.high)
	for _, x := range append(s.rest, s.low) {
		sum.Add(sum, new(big.Float).SetFloat64(x))
	}
	x, _ := sum.Float64()
	return x
}

// The bits of the fractions of 32-bit and 64-bit numbers, and the exponent of the smallest 32-bit number.
const (
	bits32, bits64 = 24, 53
	least32        = -149
)

// isExact reports whether a sum of 64 bits over the values of s is exact in any order, as far as s shows it. The values
// are multiples of the last bit of the smallest one, so that 53 bits hold all sums that are at most 2^53 times that
// bit. If 12 values are of one sign, the greatest may be 44 million times the smallest.
func isExact(s roomsensor.Stat) bool {
	least, greatest := math.Abs(float64(s.Min)), math.Abs(float64(s.Max))
	if least > greatest {
		least, greatest = greatest, least
	}
	if s.Count == 1 || greatest == 0 {
		return true
	}
	if (s.Min < 0) != (s.Max < 0) || least == 0 {
		return false // The value that is nearest to 0 is unknown.
	}
	_, exponent := math.Frexp(least)
	return float64(s.Count)*greatest <= math.Ldexp(1, max(exponent-bits32, least32)+bits64)
}

// sumError returns the largest rounding error that a sum of 64 bits over the values of s can have.
func sumError(s roomsensor.Stat) float64 {
	n, greatest := float64(s.Count), max(math.Abs(float64(s.Min)), math.Abs(float64(s.Max)))
	return n * n * greatest * 0x1p-52 // Twice that of n additions of at most n*greatest.
}
