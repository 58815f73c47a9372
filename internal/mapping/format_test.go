package mapping_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
)

var update = flag.Bool("update", false, "write the rows of the recorded messages")

// Each format has recorded messages and the rows that they must give (A11.1).
func TestFormats(t *testing.T) {
	t.Parallel()
	sampling := map[string]string{
		"airgradient": "mean", "chirpstack": "whole", "elsys": "whole", "homeassistant": "mean", "influx": "mean", "milesight": "whole",
		"notehub": "whole", "roomsensor": "whole", "shelly": "mean", "tasmota": "mean", "telegraf": "mean", "tts": "whole", "zigbee2mqtt": "mean",
	}
	all := mapping.Formats()
	require.Len(t, all, len(sampling))
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, sampling[f.Name], f.Sampling)
			require.NotEmpty(t, f.Description)
			found, ok := mapping.FormatNamed(f.Name)
			require.True(t, ok)
			require.Equal(t, f, found)
			messages := recorded(t, f.Name)
			require.NotEmpty(t, messages)
			for _, file := range messages {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				r := f.Apply(mapping.Message{Text: text, ArrivedAt: arrived})
				requireRows(t, r, file)
				requireSamePart(t, f.Mapping, r)
			}
		})
	}
	_, ok := mapping.FormatNamed("Influx")
	require.False(t, ok)
}

// recorded returns the files of the messages of a format.
func recorded(t testing.TB, format string) (messages []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + format + "/*")
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, ".want.json") {
			messages = append(messages, file)
		}
	}
	return messages
}

func requireRows(t *testing.T, r *mapping.Result, file string) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(show(r)))
	want := strings.TrimSuffix(file, filepath.Ext(file)) + ".want.json"
	if *update {
		require.NoError(t, os.WriteFile(want, got.Bytes(), 0o600))
	}
	rows, err := os.ReadFile(want)
	require.NoError(t, err)
	require.Equal(t, string(rows), got.String(), file)
}

// requireSamePart checks that a replay of some elements gives the same measurements (A10.10).
func requireSamePart(t *testing.T, m *mapping.Mapping, r *mapping.Result) {
	t.Helper()
	var measured []int
	for i := range r.Measurements {
		measured = append(measured, r.Measurements[i].Element)
	}
	if len(measured) > 0 {
		part := show(apply(m, string(r.Part(measured...))))
		require.Equal(t, show(r).Measurements, part.Measurements)
		require.Empty(t, part.Problems)
	}
}
