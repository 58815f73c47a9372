package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// mergeCases are readings of the same buckets, and what is stored of them in either order of arrival (late-merge rule,
// decision 37). The tests of packages worker and store draw all orders.
var mergeCases = []struct {
	contract string
	readings []string
	served   []string
}{
	{"decision 37 a", []string{
		reading("08:04:59.999999", `"lux":1`), reading("08:05:00", `"lux":2`), reading("08:10:00.000001", `"lux":3`),
		reading("08:19:59.9999999", `"lux":4`), reading("23:59:59.999999999", `"lux":5`), reading("00:00:00", `"lux":6`),
	}, []string{"00:00 - - - 6 -", "08:00 - - - 1 -", "08:05 - - - 2 -", "08:10 - - - 3 -", "08:15 - - - 4 -", "23:55 - - - 5 -"}},
	{"decision 37 c", []string{
		reading("08:00:00", `"co2_ppm":600,"temp_c":20`), reading("08:04:59", `"co2_ppm":null,"lux":5`), reading("08:02:00", `"co2_ppm":900,"spl_db":7`),
	}, []string{"08:00 - - - 5 -"}},
	{"decision 37 d", []string{
		reading("08:00:01", `"co2_ppm":600,"temp_c":null`), reading("08:00:01", `"temp_c":21.5,"spl_db":null`), reading("08:00:01", `"spl_db":33`),
	}, []string{"08:00 600 21.5 - - 33"}},
	{"decision 37 e", []string{
		reading("08:00:01", `"co2_ppm":600,"temp_c":-5,"lux":0`), reading("08:00:01", `"co2_ppm":601,"temp_c":-3,"lux":-0`), reading("08:00:01", `"co2_ppm":599,"temp_c":-4`),
	}, []string{"08:00 601 -3 - 0 -"}},
	{"decision 41 m", []string{reading("08:00:00", ""), reading("08:05:00", `"co2_ppm":null,"lux":null`)}, []string{"08:00 - - - - -", "08:05 - - - - -"}},
	{"decision 41 n", []string{reading("08:00:00", `"co2_ppm":-0,"temp_c":-0.0,"lux":-0e5`)}, []string{"08:00 0 0 - 0 -"}},
	{"decision 41 h", []string{reading("08:00:00", `"lux":3,"LUX":4,"pressure":"x","nested":{"lux":5}`)}, []string{"08:00 - - - 3 -"}},
}

// delivery is one order of a case, sent to a device of its own in one or more uploads.
type delivery struct {
	unit, device string
	uploads      [][]string // of readings
	served       []string
}

// deliveries returns each order of each case twice: with one reading per upload, and in one upload that is followed by
// some of its readings again.
func (e *streamEnv) deliveries() (all []delivery) {
	e.t.Helper()
	for _, tc := range mergeCases {
		conformance.Covers(e.t, tc.contract)
		reverse := slices.Clone(tc.readings)
		slices.Reverse(reverse)
		for _, order := range [][]string{tc.readings, reverse} {
			single := slices.Collect(slices.Chunk(order, 1))
			repeated := [][]string{append(slices.Clone(order), order[0]), {order[len(order)-1]}, order[:1]}
			for _, uploads := range [][][]string{single, repeated} {
				unit, device := e.newUnit()
				all = append(all, delivery{unit, device, uploads, tc.served})
			}
		}
	}
	return all
}

// TestLateMerge stores each upload of a delivery before the next one, so that readings meet in the table and not only in
// the memory of one of the two workers. Then the whole stream is delivered again and changes nothing.
func TestLateMerge(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 37 f", "decision 37 g", "decision 38 a")
	e := newService(t)
	all := e.deliveries()
	for round, more := 0, true; more; round++ {
		more = false
		for _, d := range all {
			if round < len(d.uploads) {
				e.publishReadings(d.unit, "", d.uploads[round]...)
				more = true
			}
		}
		e.settle()
	}
	for _, d := range all {
		require.Equal(t, d.served, e.served(d.device), d.uploads)
	}
	require.Empty(t, e.list("rejects", "list"), "a reading that another one replaces is no reject")
	before := e.storedReadings()
	e.replayStream()
	require.Equal(t, before, e.storedReadings())
}

// TestIngestedAt checks that measured_at is stored beside the reading, and that ingested_at is the database's time and
// changes only with the metrics.
func TestIngestedAt(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 37 b", "decision 38 b")
	e := newService(t)
	unit, device := e.newUnit()
	var last time.Time
	for _, step := range []struct {
		reading  string
		changes  bool
		measured string
	}{
		{reading("08:00:01.5", `"co2_ppm":600`), true, "08:00:01.5"},
		{reading("08:00:01.5", `"co2_ppm":600`), false, "08:00:01.5"},
		{reading("08:00:00", `"co2_ppm":700`), false, "08:00:01.5"},
		{reading("08:00:02", `"co2_ppm":600`), false, "08:00:02"}, // Later, with the same values.
		{reading("08:00:02", `"lux":1`), true, "08:00:02"},
		{reading("08:00:02.000001", `"lux":1`), true, "08:00:02.000001"}, // The whole reading: without CO2.
	} {
		after := value[time.Time](e.env, "SELECT clock_timestamp()")
		e.publishReadings(unit, "", step.reading)
		e.settle()
		before := value[time.Time](e.env, "SELECT clock_timestamp()")
		measured := value[time.Time](e.env, "SELECT measured_at FROM readings")
		require.Equal(t, step.measured, measured.UTC().Format("15:04:05.999999"), step.reading)

		readings := e.readingsSince(device, day)
		require.Len(t, readings, 1)
		ingested := readings[0].IngestedAt // measured_at is not among the fields: the OpenAPI document allows no others.
		require.Equal(t, step.changes, !ingested.Equal(last), step.reading)
		if step.changes {
			require.WithinRange(t, ingested, after, before)
		}
		last = ingested
	}
}
