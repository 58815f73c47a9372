package mapping_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
)

// BenchmarkApply maps a recorded message of each kind, and the largest messages.
func BenchmarkApply(b *testing.B) {
	lines := "air,unit=room co2=612i,temperature=21.4,humidity=40.1 1795168800000000000\n"
	metrics := `{"name":"air","tags":{"unit":"room"},"fields":{"co2":612},"timestamp":1795168800},`
	n := 1_000_000 / len(metrics)
	for _, c := range []struct {
		format, text string
		measurements int
	}{
		{"notehub", file(b, "notehub/note.json"), 1},
		{"tts", file(b, "tts/decoded.json"), 1},
		{"chirpstack", file(b, "chirpstack/up.json"), 1},
		{"tasmota", file(b, "tasmota/celsius.json"), 1},
		{"influx", lines, 1},
		{"influx", strings.Repeat("co2,unit=a value=612\n", 47_619), 47_619},
		{"telegraf", `{"metrics":[` + strings.Repeat(metrics, n-1) + strings.TrimSuffix(metrics, ",") + `]}`, n},
	} {
		f, _ := mapping.FormatNamed(c.format)
		b.Run(fmt.Sprintf("%s_%d", c.format, c.measurements), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				require.Len(b, apply(f.Mapping, c.text).Measurements, c.measurements)
			}
		})
	}
}

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}
