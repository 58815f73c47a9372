package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// atRest are readings that meet in a bucket, and what must be left of them
// whatever their order.
var atRest = []struct {
	contract string
	readings []string
	served   []string
}{
	{"decision 37.1", []string{
		at("08:04:59.999999", `"lux":1`), at("08:05:00", `"lux":2`), at("08:10:00.000001", `"lux":3`),
		at("08:19:59.9999999", `"lux":4`), at("23:59:59.999999999", `"lux":5`), at("00:00:00", `"lux":6`),
	}, []string{"00:00 - - - 6 -", "08:00 - - - 1 -", "08:05 - - - 2 -", "08:10 - - - 3 -", "08:15 - - - 4 -", "23:55 - - - 5 -"}},
	{"decision 37.3", []string{
		at("08:00:00", `"co2_ppm":600,"temp_c":20`), at("08:04:59", `"co2_ppm":null,"lux":5`), at("08:02:00", `"co2_ppm":900,"spl_db":7`),
	}, []string{"08:00 - - - 5 -"}},
	{"decision 37.3", []string{
		at("08:00:00.000001", `"co2_ppm":900`), at("08:00:00.000002", `"co2_ppm":1`), at("08:00:00", `"co2_ppm":950`),
	}, []string{"08:00 1 - - - -"}},
	{"decision 37.4", []string{
		at("08:00:01", `"co2_ppm":600,"temp_c":null`), at("08:00:01", `"temp_c":21.5,"spl_db":null`), at("08:00:01", `"spl_db":33`),
	}, []string{"08:00 600 21.5 - - 33"}},
	{"decision 37.4", []string{
		at("08:00:01", `"co2_ppm":10,"temp_c":10,"humidity_pct":10,"lux":10,"spl_db":10`), at("08:00:01", `"co2_ppm":11,"temp_c":9,"lux":null`),
		at("08:00:01", `"spl_db":11,"lux":9,"humidity_pct":null`),
	}, []string{"08:00 11 10 10 10 11"}},
	{"decision 37.5", []string{
		at("08:00:01", `"co2_ppm":600,"temp_c":-5,"lux":0`), at("08:00:01", `"co2_ppm":601,"temp_c":-3,"lux":-0`), at("08:00:01", `"co2_ppm":599,"temp_c":-4`),
	}, []string{"08:00 601 -3 - 0 -"}},
	{"decision 37.5", []string{ // The first two are the same in 32 bits.
		at("08:00:01", `"lux":100000.001`), at("08:00:01", `"lux":100000.002`), at("08:00:01.0000009", `"lux":99999.99`),
	}, []string{"08:00 - - - 100000 -"}},
	{"decision 41.14", []string{at("08:00:00", ""), at("08:05:00", `"co2_ppm":null`)}, []string{"08:00 - - - - -", "08:05 - - - - -"}},
	{"decision 41.15", []string{at("08:00:00", `"co2_ppm":-0,"temp_c":-0.0,"lux":-0e5`)}, []string{"08:00 0 0 - 0 -"}},
	{"decision 41.8", []string{at("08:00:00", `"lux":3,"LUX":4,"pressure":"x","nested":{"lux":5}`)}, []string{"08:00 - - - 3 -"}},
}

// permutations of up to three; of more only the order and its reverse.
func permutations(list []string) (all [][]string) {
	if len(list) > 3 {
		reverse := slices.Clone(list)
		slices.Reverse(reverse)
		return [][]string{list, reverse}
	}
	if len(list) < 2 {
		return [][]string{list}
	}
	for i := range list {
		rest := append(slices.Clone(list[:i]), list[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{list[i]}, p...))
		}
	}
	return all
}

// parcel is one order of a case, on its way to a device of its own.
type parcel struct {
	tc           int
	unit, device string
	uploads      [][]string // readings
}

// parcels are all orders of all cases, reading by reading, and in one upload
// with some of it again.
func (m *mail) parcels() (all []parcel) {
	m.t.Helper()
	for i, tc := range atRest {
		for _, order := range permutations(tc.readings) {
			var single [][]string
			for _, reading := range order {
				single = append(single, []string{reading})
			}
			last := order[len(order)-1]
			for _, uploads := range [][][]string{single, {append(slices.Clone(order), order[0]), {last}, order[:1]}} {
				unit, device := m.place()
				all = append(all, parcel{i, unit, device, uploads})
			}
		}
	}
	return all
}

// Each upload of a parcel is stored before the next one comes, so that readings
// meet in the tables too, and not in the memory of a worker alone; two workers
// share the stream. Then all of it comes once more, at once.
func TestReadingsAtRest(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 37.6", "decision 37.7", "decision 38.1")
	m := newMail(t)
	all := m.parcels()
	for round, more := 0, true; more; round++ {
		more = false
		for _, p := range all {
			if round < len(p.uploads) {
				m.send(p.unit, "", p.uploads[round]...)
				more = true
			}
		}
		m.settled()
	}
	for i, tc := range atRest {
		conformance.Covers(t, tc.contract)
		for _, p := range all {
			if p.tc == i {
				require.Equal(t, tc.served, m.served(p.device), p.uploads)
			}
		}
	}
	require.Empty(t, m.data("rejects", "list"), "what loses is no reject")
	before := m.rows()
	m.replayStream()
	require.Equal(t, before, m.rows())
}

// ingested is when a device's only reading was written.
func (m *mail) ingested(device string) string {
	m.t.Helper()
	var page struct {
		Data []map[string]json.RawMessage `json:"data"`
	}
	require.NoError(m.t, json.Unmarshal([]byte(m.get("/devices/"+device+"/readings?last=90d")), &page))
	require.Len(m.t, page.Data, 1)
	require.Len(m.t, page.Data[0], 7, "measured_at is not among the fields")
	return strings.Trim(string(page.Data[0]["ingested_at"]), `"`)
}

// The instant of the measurement is kept beside the reading, and the time of
// the write is the database's and moves with the metrics alone.
func TestIngestedAtMovesWithTheMetricsAlone(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 37.2", "decision 38.2")
	m := newMail(t)
	unit, device := m.place()
	last := ""
	for _, step := range []struct {
		reading  string
		moves    bool
		measured string
	}{
		{at("08:00:01.5", `"co2_ppm":600`), true, "08:00:01.5"},
		{at("08:00:01.5", `"co2_ppm":600`), false, "08:00:01.5"},
		{at("08:00:01.5", `"co2_ppm":null`), false, "08:00:01.5"},
		{at("08:00:01.5", `"co2_ppm":599.5`), false, "08:00:01.5"},
		{at("08:00:00", `"co2_ppm":700`), false, "08:00:01.5"},
		{at("08:00:02", `"co2_ppm":600`), false, "08:00:02"}, // Later, of the same values.
		{at("08:00:02", `"co2_ppm":600.00001`), false, "08:00:02"},
		{at("08:00:02", `"lux":1`), true, "08:00:02"},
		{at("08:00:02.000001", `"lux":1`), true, "08:00:02.000001"}, // As a whole: without the CO2.
		{at("08:00:02.000001", `"lux":2`), true, "08:00:02.000001"},
	} {
		var before, after, measured time.Time
		require.NoError(t, m.conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&before))
		m.send(unit, "", step.reading)
		m.settled()
		require.NoError(t, m.conn.QueryRow(t.Context(), "SELECT clock_timestamp(), measured_at FROM readings").Scan(&after, &measured))
		require.Equal(t, step.measured, measured.UTC().Format("15:04:05.999999"), step.reading)
		now := m.ingested(device)
		require.Equal(t, step.moves, now != last, step.reading)
		if step.moves {
			written, err := time.Parse(time.RFC3339, now)
			require.NoError(t, err)
			require.WithinRange(t, written, before, after)
		}
		last = now
	}
}
