package mapping_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// FuzzApply applies any mapping to any message: the result is bounded, and can be stored.
func FuzzApply(f *testing.F) {
	for _, format := range mapping.Formats() {
		for _, name := range recorded(f, format.Name) {
			text, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(format.Text, text)
		}
	}
	f.Add([]byte(`{"each":"$","unit":"$.0","at":[{"path":"1","format":"unix_ns"}],"metrics":{"lux":[{"path":"-1","scale":-1e308}]}}`), []byte(`["x",[1e999999,-1],{"\u0031":"1e99"}]`))
	f.Fuzz(func(t *testing.T, document, message []byte) {
		m, err := mapping.Parse(document)
		if err != nil {
			var wrong *mapping.Error
			require.True(t, errors.As(err, &wrong) && wrong.Byte >= 1 && wrong.Byte <= max(len(document), 65_536)+1)
			return
		}
		m.Suggest(mapping.Message{Text: message})
		r := apply(m, string(message))
		require.LessOrEqual(t, len(r.Measurements)+len(r.Problems)+r.Ignored, len(message)+1)
		for i := range r.Measurements {
			requireStorable(t, &r.Measurements[i])
			r.Part(r.Measurements[i].Element)
		}
		for _, p := range r.Problems {
			require.True(t, roomsensor.IsPlain(p.Detail))
			r.Part(p.Element)
		}
	})
}

func requireStorable(t *testing.T, m *mapping.Measurement) {
	t.Helper()
	require.NoError(t, roomsensor.CheckName(m.Unit))
	require.Zero(t, m.BadValues&m.Values.Mask())
	require.NotZero(t, m.BadValues|m.Values.Mask())
	require.Zero(t, m.MeasuredAt.Nanosecond()%1000)
	for _, metric := range roomsensor.Metrics {
		least, greatest := metric.Range()
		x, _ := m.Values.Get(metric)
		require.False(t, float64(x) < min(least, 0) || float64(x) > greatest)
	}
	if m.Firmware != nil {
		require.True(t, roomsensor.IsFirmwareVersion(*m.Firmware))
	}
}

// FuzzLines parses any lines. A line that is a problem does not change what the others give.
func FuzzLines(f *testing.F) {
	f.Add(`m,u=a\ b\,c\=d v=1,s="a \"b\"\\",ok=T 7`, `m,u=x v=1i`)
	f.Add(`m v=1`, `m\,\ n,u="x",t=\ v=1u,w=.5e-3 -9`)
	f.Add(`#`, "m,u=\xff v=1")
	m, err := mapping.Parse([]byte(lineMapping))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.Contains(first+second, "\n") || strings.HasPrefix(first, "\ufeff") || strings.HasPrefix(second, "\ufeff") {
			return
		}
		one, two, both := apply(m, first), apply(m, second), apply(m, first+"\n"+second)
		require.Len(t, both.Measurements, len(one.Measurements)+len(two.Measurements))
		require.Len(t, both.Problems, len(one.Problems)+len(two.Problems))
		for i := range both.Measurements {
			requireStorable(t, &both.Measurements[i])
		}
	})
}

// The order of members does not matter.
func TestMemberOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, format := range mapping.Formats() {
		for _, name := range recorded(t, format.Name) {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			text := strings.TrimPrefix(name, "testdata/")
			want := show(apply(format.Mapping, file(t, text)))
			for range 5 {
				message := shuffled(t, random, json.RawMessage(file(t, text)))
				m, err := mapping.Parse(shuffled(t, random, format.Text))
				require.NoError(t, err)
				require.Equal(t, want, show(apply(m, string(message))), name)
			}
		}
	}
}

// shuffled returns a JSON text with the members of all objects in random order. Numbers keep their digits.
func shuffled(t *testing.T, random *rand.Rand, text json.RawMessage) json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	var list []json.RawMessage
	var parts []string
	switch {
	case json.Unmarshal(text, &object) == nil && object != nil:
		for name, value := range object {
			quoted, err := json.Marshal(name)
			require.NoError(t, err)
			parts = append(parts, string(quoted)+":"+string(shuffled(t, random, value)))
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return json.RawMessage("{" + strings.Join(parts, ",") + "}")
	case json.Unmarshal(text, &list) == nil && list != nil:
		for _, value := range list {
			parts = append(parts, string(shuffled(t, random, value)))
		}
		return json.RawMessage("[" + strings.Join(parts, ",") + "]")
	}
	return text
}
