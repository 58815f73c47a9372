package chart_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/chart"
)

var nan = float32(math.NaN())

func TestSparkline(t *testing.T) {
	t.Parallel()
	size := chart.Size{Width: 96, Height: 24}
	t.Run("gaps", func(t *testing.T) {
		t.Parallel()
		got := chart.Sparkline([]float32{400, 1200, 800, nan, 800, nan, nan, 400, 1200}, nil, size, "x")
		require.Equal(t, `<svg class="sparkline" viewBox="0 0 96 24" role="img" aria-label="x">`+
			`<path d="M1 23l12-22 12 11M48 12h0M83 23l12-22"/></svg>`, string(got))
	})
	t.Run("the scale includes 400 to 1,200 and all values", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, chart.Sparkline([]float32{600, 610}, nil, size, "x"), `d="M1 18l94-1"`)
		require.Contains(t, chart.Sparkline([]float32{400, 2000}, nil, size, "x"), `d="M1 23l94-22"`)
	})
	t.Run("label", func(t *testing.T) {
		t.Parallel()
		got := chart.Sparkline(nil, nil, size, `<CO₂> "today"`)
		require.Equal(t, `<svg class="sparkline" viewBox="0 0 96 24" role="img" `+
			`aria-label="&lt;CO₂&gt; &#34;today&#34;"><path d=""/></svg>`, string(got))
	})
	t.Run("at most 250 bytes", func(t *testing.T) {
		t.Parallel()
		zigzag := make([]float32, 24)
		for i := range zigzag {
			zigzag[i] = float32(400 + 800*(i%2))
		}
		require.LessOrEqual(t, len(chart.Sparkline(zigzag, nil, size, "x")), 250)
	})
}

func TestSparklineAlwaysValid(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	special := []float32{nan, float32(math.Inf(1)), float32(math.Inf(-1)), 0, math.MaxFloat32, -math.MaxFloat32, 1e-45}
	for range 2000 {
		values := make([]float32, random.IntN(25))
		for i := range values {
			values[i] = float32(random.NormFloat64() * 500)
			if random.IntN(4) == 0 {
				values[i] = special[random.IntN(len(special))]
			}
		}
		got := chart.Sparkline(values, nil, chart.Size{Width: 96, Height: 24}, "a&b")
		elements(t, string(got), func(string, map[string]string) {})
		require.LessOrEqual(t, len(got), 250+24*12)
		for _, wrong := range []string{"NaN", "Inf", "e+", "e-"} {
			require.NotContains(t, path(string(got)), wrong, values)
		}
	}
}

// path returns the part of a drawing with coordinates.
func path(drawing string) string {
	_, rest, _ := strings.Cut(drawing, ` d="`)
	d, _, _ := strings.Cut(rest, `"`)
	return d
}
