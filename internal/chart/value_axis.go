package chart

import (
	"math"
	"strconv"
)

// valueIntervals is the maximum number of intervals between the ticks of a value axis.
const valueIntervals = 5

// valueAxis is a scale with ticks at round numbers, from its first tick to its last.
type valueAxis struct {
	least, greatest float64
	ticks           []float64
	digits          int // of the ticks after the decimal point
}

// valueAxis returns an axis for all points, thresholds and the values that the chart includes.
func (l *Line) valueAxis(points []Point) valueAxis {
	low, high := min(l.Low, l.High), max(l.Low, l.High)
	if low == high && len(points) > 0 {
		low, high = float64(points[0].Low), float64(points[0].High)
	}
	for i := range points {
		low, high = min(low, float64(points[i].Low)), max(high, float64(points[i].High))
	}
	for _, t := range l.Thresholds {
		low, high = min(low, float64(t.Value)), max(high, float64(t.Value))
	}
	if low == high {
		margin := max(1, math.Abs(low)/10)
		low, high = low-margin, high+margin
	}
	return niceAxis(low, high)
}

// niceAxis returns an axis that includes low and high, with ticks at multiples of 1, 2 or 5 times a power of ten.
func niceAxis(low, high float64) valueAxis {
	least := (high - low) / valueIntervals
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for {
		for _, factor := range []float64{1, 2, 5} {
			step := factor * power
			first, last := math.Floor(low/step), math.Ceil(high/step)
			if n := last - first; n > valueIntervals {
				continue
			}
			axis := valueAxis{least: first * step, greatest: last * step, digits: digitsOf(step)}
			for i := first; i <= last; i++ {
				axis.ticks = append(axis.ticks, i*step)
			}
			return axis
		}
		power *= 10
	}
}

// digitsOf returns how many digits after the decimal point the multiples of 1, 2 or 5 times a power of ten have.
func digitsOf(step float64) int { return max(0, int(-math.Floor(math.Log10(step)+1e-9))) }

// label formats a tick.
func (a *valueAxis) label(tick float64) string {
	return strconv.FormatFloat(tick+0, 'f', a.digits, 64) // Adding 0 turns -0 into 0.
}
