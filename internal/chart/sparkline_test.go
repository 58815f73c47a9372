package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
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
		got := chart.Sparkline([]float32{400, 1200, 800, nan, 800, nan, nan, 400, 1200}, 400, 1200, nil, size, "")
		require.Equal(t, `<svg class="sparkline" viewBox="0 0 96 24" aria-hidden="true">`+
			`<path d="M1 23l12-22 12 11M48 12h0M83 23l12-22"/></svg>`, string(got))
	})
	t.Run("the scale includes low to high and all values", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, chart.Sparkline([]float32{600, 610}, 400, 1200, nil, size, ""), `d="M1 18l94-1"`)
		require.Contains(t, chart.Sparkline([]float32{400, 2000}, 400, 1200, nil, size, ""), `d="M1 23l94-22"`)
	})
	t.Run("label", func(t *testing.T) {
		t.Parallel()
		got := chart.Sparkline(nil, 0, 1, nil, size, `<CO₂> "today"`)
		require.Equal(t, `<svg class="sparkline" viewBox="0 0 96 24" role="img" `+
			`aria-label="&lt;CO₂&gt; &#34;today&#34;"><path d=""/></svg>`, string(got))
	})
	t.Run("readings of a day are merged into hours", func(t *testing.T) {
		t.Parallel()
		readings, hours := make([]float32, 288), make([]float32, 24)
		for i := range readings {
			readings[i] = float32(500 + i/12*10)
			hours[i/12] = readings[i]
		}
		readings[7] = nan
		require.Equal(t, chart.Sparkline(hours, 400, 1200, nil, size, ""), chart.Sparkline(readings, 400, 1200, nil, size, ""))
	})
	t.Run("at most 250 bytes", func(t *testing.T) {
		t.Parallel()
		zigzag := make([]float32, 24)
		for i := range zigzag {
			zigzag[i] = float32(400 + 800*(i%2))
		}
		require.LessOrEqual(t, len(chart.Sparkline(zigzag, 400, 1200, nil, size, "")), 250)
	})
}

func TestSparklineAlwaysValid(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	special := []float32{nan, float32(math.Inf(1)), float32(math.Inf(-1)), 0, math.MaxFloat32, -math.MaxFloat32, 1e-45}
	for range 2000 {
		values := make([]float32, random.IntN(60))
		for i := range values {
			values[i] = float32(random.NormFloat64() * 500)
			if random.IntN(4) == 0 {
				values[i] = special[random.IntN(len(special))]
			}
		}
		got := chart.Sparkline(values, 0, float32(random.IntN(2)), nil, chart.Size{Width: 96, Height: 24}, "a&b")
		requireXML(t, string(got))
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

// requireXML fails unless a text is well-formed XML.
func requireXML(t *testing.T, text string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, text)
	}
}
