package mapping_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// arrived is the arrival of all messages. Its zone and its nanoseconds must not show in results.
var arrived = time.Date(2026, time.November, 20, 11, 0, 9, 123456789, time.FixedZone("", 3600))

func parse(t testing.TB, text string) *mapping.Mapping {
	t.Helper()
	m, err := mapping.Parse([]byte(text))
	require.NoError(t, err)
	return m
}

func apply(m *mapping.Mapping, text string) *mapping.Result {
	return m.Apply(mapping.Message{Text: []byte(text), ArrivedAt: arrived})
}

// shown is a result as JSON documents show it.
type shown struct {
	Measurements []row     `json:"measurements"`
	Heartbeats   []row     `json:"heartbeats,omitempty"`
	Problems     []problem `json:"problems,omitempty"`
	Ignored      int       `json:"ignored,omitempty"`
}

type row struct {
	Unit       string             `json:"unit"`
	MeasuredAt *time.Time         `json:"measured_at,omitempty"`
	Values     map[string]float32 `json:"values,omitempty"`
	Bad        []string           `json:"bad,omitempty"`
	Problem    string             `json:"problem,omitempty"`
	RSSI       *int32             `json:"rssi_dbm,omitempty"`
	Bars       *int16             `json:"bars,omitempty"`
	Firmware   *string            `json:"firmware_version,omitempty"`
}

type problem struct {
	Element int    `json:"element"`
	Detail  string `json:"detail"`
}

func show(r *mapping.Result) shown {
	s := shown{Measurements: []row{}, Ignored: r.Ignored}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		shown := showHeartbeat(&m.Heartbeat)
		shown.MeasuredAt, shown.Problem, shown.Values = &m.MeasuredAt, string(m.Problem), map[string]float32{}
		for _, metric := range roomsensor.Metrics {
			if x, ok := m.Values.Get(metric); ok {
				shown.Values[metric.String()] = x
			}
			if m.BadValues&(1<<metric) != 0 {
				shown.Bad = append(shown.Bad, metric.String())
			}
		}
		s.Measurements = append(s.Measurements, shown)
	}
	for i := range r.Heartbeats {
		s.Heartbeats = append(s.Heartbeats, showHeartbeat(&r.Heartbeats[i]))
	}
	for _, p := range r.Problems {
		s.Problems = append(s.Problems, problem{p.Element, p.Detail})
	}
	return s
}

func showHeartbeat(h *mapping.Heartbeat) row {
	r := row{Unit: h.Unit, Firmware: h.Firmware}
	if h.Signal != nil {
		r.RSSI, r.Bars = h.Signal.RSSI, h.Signal.Bars
	}
	return r
}

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}
