package roomsensor_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func standard(x float32) string { return strconv.FormatFloat(float64(x), 'f', -1, 32) }

// Decision 1: every number that a sensor of three decimals can send, and its
// neighbours, which take all digits.
func TestNumbersAreTheShortest(t *testing.T) {
	t.Parallel()
	for n := range 1_000_100 {
		for _, scale := range []float64{1, 10, 100, 1000} {
			x := float32(float64(n) / scale)
			for _, x := range []float32{x, math.Nextafter32(-x, 1)} {
				if got := string(roomsensor.AppendNumber(nil, x)); got != standard(x) {
					require.Equal(t, standard(x), got)
				}
			}
		}
	}
}

func BenchmarkAppendNumber(b *testing.B) {
	for name, numbers := range map[string][]float32{"sensor": {612, 21.4, 40.1, 120, 38.25}, "any": {612.3333, 21.428571, 1e-7, 3e30, 99999.95}} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 64)
			for i := 0; b.Loop(); i++ {
				buf = roomsensor.AppendNumber(buf[:0], numbers[i%len(numbers)])
			}
		})
		b.Run(name+"-strconv", func(b *testing.B) {
			buf := make([]byte, 0, 64)
			for i := 0; b.Loop(); i++ {
				buf = strconv.AppendFloat(buf[:0], float64(numbers[i%len(numbers)]), 'f', -1, 32)
			}
		})
	}
}
