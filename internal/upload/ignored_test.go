package upload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/upload"
	"roomsensor/test/conformance"
)

// ignored returns the unknown members of an upload, which Check and Parse must find alike.
func ignored(t *testing.T, text string) *upload.Ignored {
	t.Helper()
	heading, fault := upload.Check([]byte(text))
	require.Nil(t, fault)
	u := parse(t, []byte(text))
	require.Equal(t, heading.Ignored, u.Ignored)
	return &u.Ignored
}

// withMembers returns an upload with some numbered unknown members.
func withMembers(from, to int) string {
	text := `{"hardware_id":"` + unit + `","readings":[]`
	for i := from; i < to; i++ {
		text += fmt.Sprintf(`,"x%d":%d`, i, i)
	}
	return text + "}"
}

// Unknown members of the upload, its signal and its readings are ignored and named.
func TestIgnoredNames(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 46 a")
	long := strings.Repeat("é", 64)
	for text, want := range map[string][]string{
		`"signal":{"rssi_dbm":-87,"bars":2},"readings":[{"measured_at":"2026-11-20T09:55:03Z","co2_ppm":1}]`:     {},
		`"readings":[{"measured_at":1,"co2":1},{"co2":2,"CO2_PPM":3},{"temp":null}]`:                             {"co2", "CO2_PPM", "temp"},
		`"battery":{"level":1},"signal":{"dbm":1,"bars":1,"battery":2},"readings":[{"v":{"w":1}}],"v":[{"a":1}]`: {"battery", "dbm", "v"},
		`"readings":[1,[{"a":1}],null],"signal":[{"a":1}]`:                                                       {},
		`"readings":[{"\u0063o2":1,"":2}]`:                                                                       {"co2", ""},
		`"readings":[],"` + long + `":1,"` + long + `x":2,"x` + long + `":3`:                                     {long, "x" + long[:len(long)-len("é")]},
		`"readings":[],"rsi_abc_secret":1,"a rsk_xyz_secret":2,"rsi_def_secret":3`:                               {"rsi_...", "a rsk_..."},
	} {
		require.Equal(t, want, ignored(t, `{"hardware_id":"`+unit+`",`+text+`}`).Names(), text)
	}
	names := ignored(t, withMembers(0, 100)).Names()
	require.Len(t, names, 10)
	require.Equal(t, "x9", names[9])
}

// The metric counts members by name, 50 names one by one and the others together.
func TestIgnoredCounter(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 46 c")
	registry := prometheus.NewRegistry()
	counter := upload.NewIgnoredCounter(registry, "ignored_total", "Ignored.")
	var both upload.Ignored
	both.Merge(ignored(t, `{"hardware_id":"`+unit+`","readings":[{"co2":1},{"co2":2}]}`))
	both.Merge(ignored(t, `{"hardware_id":"`+unit+`","readings":[{"co2":1,"other":1}]}`))
	counter.Add(&both)
	counter.Add(ignored(t, withMembers(0, 100)))
	counter.Add(ignored(t, withMembers(200, 201)))
	counter.Add(ignored(t, withMembers(0, 1)))

	counts := gathered(t, registry)
	require.Len(t, counts, 51)
	require.Equal(t, 3.0, counts["co2"])
	require.Equal(t, 2.0, counts["x0"])
	require.Equal(t, 1.0, counts["x48"])
	require.Equal(t, 1.0+51+1, counts["other"])
}

// What is kept of an upload does not grow with the number of names in it: the 51st does not count by name, although the
// metric has its name.
func TestIgnoredSize(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counter := upload.NewIgnoredCounter(registry, "ignored_total", "Ignored.")
	counter.Add(ignored(t, withMembers(49, 51)))
	counter.Add(ignored(t, withMembers(0, 100)))
	counts := gathered(t, registry)
	require.Equal(t, []float64{2, 1}, []float64{counts["x49"], counts["x50"]})
}

// gathered returns the counts by name.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return counts
}
