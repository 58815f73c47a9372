package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

func suggest(t *testing.T, format, message string) mapping.Suggestion {
	t.Helper()
	f, ok := mapping.FormatNamed(format)
	require.True(t, ok)
	return f.Suggest(mapping.Message{Text: []byte(message), ArrivedAt: arrived})
}

// A suggestion lists every path with its value, and for each metric those that fit (A11.11).
func TestSuggest(t *testing.T) {
	t.Parallel()
	s := suggest(t, "notehub", "\ufeff"+`{"body":{"Room.Temp":"21.5","co2":{"value":612},"rssi_db":40,"hum":140,"lux":null,"Noise-dB":38,"rh":41},"list":[1,{"illuminance":7}]}`)
	require.Equal(t, []mapping.PathValue{
		{`body.Room\.Temp`, "21.5"},
		{"body.co2.value", "612"},
		{"body.rssi_db", "40"},
		{"body.hum", "140"},
		{"body.lux", "null"},
		{"body.Noise-dB", "38"},
		{"body.rh", "41"},
		{"list.0", "1"},
		{"list.1.illuminance", "7"},
	}, s.Values)
	require.Equal(t, [roomsensor.MetricCount][]string{
		{"body.co2.value"}, {`body.Room\.Temp`}, {"body.rh"}, {"list.1.illuminance"}, {"body.Noise-dB"},
	}, s.Metrics)
}

// The paths of a measurement in a list are relative, and can be used in the mapping as they are.
func TestSuggestLists(t *testing.T) {
	t.Parallel()
	s := suggest(t, "telegraf", `{"metrics":[{"fields":{"c_o_2":1}},{"fields":{"co2":2}}],"id":"x"}`)
	require.Equal(t, []mapping.PathValue{{"fields.c_o_2", "1"}, {"$.id", "x"}}, s.Values)
	require.Equal(t, []string{"fields.c_o_2"}, s.Metrics[roomsensor.CO2])
	s = suggest(t, "influx", "# comment\nbad\nm,u=x CO2=612 7\nm,u=y other=1")
	require.Equal(t, []mapping.PathValue{{"measurement", "m"}, {"tags.u", "x"}, {"fields.CO2", "612"}, {"timestamp", "7"}}, s.Values)
	require.Equal(t, []string{"fields.CO2"}, s.Metrics[roomsensor.CO2])
}

func TestSuggestLimits(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", "{", "[", strings.Repeat("[", 100_000), "\xff"} {
		require.Empty(t, suggest(t, "notehub", message))
		require.Empty(t, suggest(t, "influx", message))
	}
	s := suggest(t, "notehub", `{"a":"`+strings.Repeat("界", 100)+`","b":[`+strings.Repeat("1,", 1000)+`1]}`)
	require.Len(t, s.Values, 500)
	require.Equal(t, strings.Repeat("界", 66), s.Values[0].Value)
	require.Equal(t, fmt.Sprintf("b.%d", 498), s.Values[499].Path)
	const depth = 9_000
	deep := `{"x":` + strings.Repeat("[", depth) + strings.Repeat("[],", 400_000) + "1" + strings.Repeat("]", depth) + `,"y":2}`
	require.Equal(t, []mapping.PathValue{{"y", "2"}}, suggest(t, "notehub", deep).Values)
}
