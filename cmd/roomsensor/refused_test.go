package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// soon is a reading some time from now.
func soon(after time.Duration) string {
	return fmt.Sprintf(`{"measured_at":%q}`, roomsensor.FormatTime(time.Now().Add(after)))
}

const old = `{"measured_at":"2014-12-31T23:59:59.999999Z","lux":9}`

// refused are uploads and what becomes of them: what is served of the day, and
// the rejects with what they keep. UNIT is the unit of the device; a unit that
// is named is the subject that the upload comes under.
var refused = []struct {
	name     string
	contract []string
	unit     string
	text     string
	served   []string
	rejects  map[string]string
}{
	{
		"values at their bounds",
		[]string{"decision 41.1"},
		"",
		`{"hardware_id":"UNIT","readings":[` + at("08:00:00", `"co2_ppm":0,"temp_c":-90,"humidity_pct":0,"lux":0,"spl_db":0`) + "," +
			at("08:05:00", `"co2_ppm":100000,"temp_c":90,"humidity_pct":100,"lux":200000,"spl_db":200`) + `]}`,
		[]string{"08:00 0 -90 0 0 0", "08:05 100000 90 100 200000 200"},
		nil,
	}, {
		"values past their bounds",
		[]string{"decision 41.1", "decision 41.3", "decision 41.5"},
		"",
		`{"hardware_id":"UNIT","readings":[` + at("08:00:00", `"co2_ppm":-1e-9,"temp_c":-90.0000001,"humidity_pct":-1,"lux":-0.1,"spl_db":-5`) + "," +
			at("08:05:00", `"co2_ppm":1,"lux":2`) + "," +
			at("08:10:00", `"co2_ppm":100000.00001,"temp_c":90.1,"humidity_pct":100.5,"lux":2e5,"spl_db":201`) + `]}`,
		[]string{"08:00 - - - - -", "08:05 1 - - 2 -", "08:10 - - - 200000 -"},
		map[string]string{"value_invalid": `{"hardware_id":"UNIT","readings":[` +
			at("08:00:00", `"co2_ppm":-1e-9,"temp_c":-90.0000001,"humidity_pct":-1,"lux":-0.1,"spl_db":-5`) + "," +
			at("08:10:00", `"co2_ppm":100000.00001,"temp_c":90.1,"humidity_pct":100.5,"lux":2e5,"spl_db":201`) + `]}`},
	}, {
		"values that are no number",
		[]string{"decision 41.3"},
		"",
		`{"hardware_id":"UNIT","readings":[` + at("08:00:00", `"co2_ppm":"600","temp_c":true,"humidity_pct":[1],"lux":{},"spl_db":1e400`) + `]}`,
		[]string{"08:00 - - - - -"},
		map[string]string{"value_invalid": `{"hardware_id":"UNIT","readings":[` +
			at("08:00:00", `"co2_ppm":"600","temp_c":true,"humidity_pct":[1],"lux":{},"spl_db":1e400`) + `]}`},
	}, {
		"times at and past their bounds",
		[]string{"decision 41.2", "decision 41.4"},
		"",
		`{"hardware_id":"UNIT","readings":[` + old + "," + at("08:00:00", `"lux":1`) + `,{"measured_at":"2015-01-01T00:00:00Z"},SOON,LATER]}`,
		[]string{"08:00 - - - 1 -"},
		map[string]string{"measured_at_out_of_range": `{"hardware_id":"UNIT","readings":[` + old + `,LATER]}`},
	}, {
		"one reject a reason, with the fields of the upload",
		[]string{"decision 41.4", "decision 41.5", "decision 41.9", "decision 41.16"},
		"",
		`{ "note":{"a":[1, 2]},"signal":7,"readings" : [7, {"lux":1} ,` + old + "," + at("08:00:00", `"lux":"x"`) + "," + at("08:05:00", `"lux":3`) +
			`], "sent_at":"now","hardware_id":"UNIT"}`,
		[]string{"08:00 - - - - -", "08:05 - - - 3 -"},
		map[string]string{
			"measured_at_invalid":      `{ "note":{"a":[1, 2]},"signal":7,"readings" : [7,{"lux":1}], "sent_at":"now","hardware_id":"UNIT"}`,
			"measured_at_out_of_range": `{ "note":{"a":[1, 2]},"signal":7,"readings" : [` + old + `], "sent_at":"now","hardware_id":"UNIT"}`,
			"value_invalid":            `{ "note":{"a":[1, 2]},"signal":7,"readings" : [` + at("08:00:00", `"lux":"x"`) + `], "sent_at":"now","hardware_id":"UNIT"}`,
			"field_invalid":            `{ "note":{"a":[1, 2]},"signal":7,"readings" : [], "sent_at":"now","hardware_id":"UNIT"}`,
		},
	}, {
		"fields that are malformed",
		[]string{"decision 41.7"},
		"",
		`{"hardware_id":"UNIT","signal":{"rssi_dbm":-80,"bars":6},"sent_at":"2026-01-01","firmware_version":"","readings":[` + at("08:00:00", "") + `]}`,
		[]string{"08:00 - - - - -"},
		map[string]string{"field_invalid": `{"hardware_id":"UNIT","signal":{"rssi_dbm":-80,"bars":6},"sent_at":"2026-01-01","firmware_version":"","readings":[]}`},
	}, {
		"fields that are unknown",
		[]string{"decision 41.8"},
		"",
		`{"hardware_id":"UNIT","Signal":7,"battery":{"mv":3600},"readings":[` + at("08:00:00", `"pm25":1e999`) + `],"x":null}`,
		[]string{"08:00 - - - - -"},
		nil,
	}, {
		"no JSON",
		[]string{"decision 41.6", "decision 41.9"},
		"", `{"hardware_id":"UNIT","readings":[` + at("08:00:00", "") + `]`, nil,
		map[string]string{"not_parsable": `{"hardware_id":"UNIT","readings":[` + at("08:00:00", "") + `]`},
	}, {
		"no object",
		[]string{"decision 41.6"},
		"", `[{"hardware_id":"UNIT","readings":[]}]`, nil,
		map[string]string{"not_parsable": `[{"hardware_id":"UNIT","readings":[]}]`},
	}, {
		"nothing",
		[]string{"decision 41.6"},
		"", "", nil,
		map[string]string{"not_parsable": ""},
	}, {
		"a member twice",
		[]string{"decision 41.6"},
		"", `{"hardware_id":"UNIT","readings":[{"x":{"a":1,"a":2}},` + at("08:00:00", "") + `]}`, nil,
		map[string]string{"not_parsable": `{"hardware_id":"UNIT","readings":[{"x":{"a":1,"a":2}},` + at("08:00:00", "") + `]}`},
	}, {
		"hardware_id is no text",
		[]string{"decision 41.6", "decision 41.9"},
		"", `{"hardware_id":7,"readings":[]}`, nil,
		map[string]string{"not_parsable": `{"hardware_id":7,"readings":[]}`},
	}, {
		"hardware_id is missing",
		[]string{"decision 41.6", "decision 41.9"},
		"", `{"readings":[` + at("08:00:00", "") + `]}`, nil,
		map[string]string{"not_parsable": `{"readings":[` + at("08:00:00", "") + `]}`},
	}, {
		"no array",
		[]string{"decision 41.6"},
		"", `{"hardware_id":"UNIT","readings":{}}`, nil,
		map[string]string{"not_parsable": `{"hardware_id":"UNIT","readings":{}}`},
	}, {
		"another unit's",
		[]string{"decision 41.6", "decision 41.9"},
		"", `{"hardware_id":"dev:404","readings":[` + at("08:00:00", "") + `]}`, nil,
		map[string]string{"hardware_id_mismatch": `{"hardware_id":"dev:404","readings":[` + at("08:00:00", "") + `]}`},
	}, {
		"too many",
		[]string{"decision 41.6", "decision 41.9"},
		"", `{"hardware_id":"UNIT","readings":[` + strings.Repeat("{},", 10_000) + at("08:00:00", "") + `]}`, nil,
		map[string]string{"too_many_readings": `{"hardware_id":"UNIT","readings":[` + strings.Repeat("{},", 10_000) + at("08:00:00", "") + `]}`},
	}, {
		"as many as are allowed",
		[]string{"decision 41.6"},
		"", `{"hardware_id":"UNIT","readings":[` + strings.Repeat("1,", 9_999) + at("08:00:00", "") + `]}`,
		[]string{"08:00 - - - - -"},
		map[string]string{"measured_at_invalid": `{"hardware_id":"UNIT","readings":[` + strings.Repeat("1,", 9_998) + `1]}`},
	}, {
		"an unknown unit, after its time",
		[]string{"decision 41.9", "decision 41.10"},
		"dev:90001", `{"hardware_id":"dev:90001","readings":[{},` + old + "," + at("08:00:00", `"lux":"x"`) + `]}`, nil,
		map[string]string{
			"measured_at_invalid":      `{"hardware_id":"dev:90001","readings":[{}]}`,
			"measured_at_out_of_range": `{"hardware_id":"dev:90001","readings":[` + old + `]}`,
			"unknown_unit":             `{"hardware_id":"dev:90001","readings":[` + at("08:00:00", `"lux":"x"`) + `]}`,
		},
	}, {
		"an unknown unit without readings",
		[]string{"decision 41.9"},
		"dev:90002", `{"hardware_id":"dev:90002","readings":[]}`, nil,
		map[string]string{"unknown_unit": `{"hardware_id":"dev:90002","readings":[]}`},
	}, {
		"a unit in no device, after its time",
		[]string{"decision 41.9", "decision 41.10"},
		"dev:90003", `{"hardware_id":"dev:90003","readings":[` + old + `,{},` + at("08:00:00", `"lux":"x"`) + `]}`, nil,
		map[string]string{
			"measured_at_invalid":      `{"hardware_id":"dev:90003","readings":[{}]}`,
			"measured_at_out_of_range": `{"hardware_id":"dev:90003","readings":[` + old + `]}`,
			"not_installed":            `{"hardware_id":"dev:90003","readings":[` + at("08:00:00", `"lux":"x"`) + `]}`,
		},
	}, {
		"what the database refuses",
		[]string{"decision 41.4", "decision 41.9"},
		"", `{"hardware_id":"UNIT","readings":[` + at("08:00:00", `"lux":13`) + "," + at("08:05:00", `"lux":14`) + `]}`,
		[]string{"08:05 - - - 14 -"},
		map[string]string{"not_storable": `{"hardware_id":"UNIT","readings":[` + at("08:00:00", `"lux":13`) + `]}`},
	},
}

// Every upload of the table, from the stream to the API and to the operator;
// then the whole stream once more, which makes no second reject.
func TestWhatBecomesOfBadUploads(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 41.13", "decision 41.16")
	m := newMail(t)
	_, err := m.conn.Exec(t.Context(), "ALTER TABLE readings ADD CONSTRAINT unlucky CHECK (lux <> 13)")
	require.NoError(t, err)
	m.run("device", "remove-hardware", m.device(m.team, "dev:90003"), "--at", "2016-01-01T00:00:00Z")
	times := strings.NewReplacer("SOON", soon(9*time.Minute), "LATER", soon(20*time.Minute))
	units, devices := make([]string, len(refused)), make([]string, len(refused))
	for i, tc := range refused {
		units[i], devices[i] = m.place()
		if tc.unit != "" {
			units[i] = tc.unit
		}
		m.put(units[i], strings.ReplaceAll(times.Replace(tc.text), "UNIT", units[i]))
	}
	m.settled()
	check := func() {
		for i, tc := range refused {
			conformance.Covers(t, tc.contract...)
			require.Equal(t, tc.served, m.served(devices[i]), tc.name)
			kept := map[string]string{}
			for reason, text := range tc.rejects {
				kept[reason] = strings.ReplaceAll(times.Replace(text), "UNIT", units[i])
			}
			require.Equal(t, kept, m.rejects(units[i]), tc.name)
		}
	}
	check()
	rejects := m.data("rejects", "list")
	m.replayStream()
	require.Equal(t, rejects, m.data("rejects", "list"))
	check()
}

// What failed lands once its cause is mended; what fails again makes no second
// reject, but the time of the replay moves on.
func TestReplayOfRejects(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 41.11", "decision 41.12")
	m := newMail(t)
	m.send("dev:1", "", at("08:00:00", `"lux":1`), "{}")
	m.put("dev:2", "hello")
	m.settled()
	replayed := func() map[string]any {
		at := map[string]any{}
		for _, reject := range m.data("rejects", "list") {
			at[reject["reason"].(string)] = reject["replayed_at"]
		}
		require.Len(t, at, 3)
		return at
	}
	require.Equal(t, map[string]any{"unknown_unit": nil, "measured_at_invalid": nil, "not_parsable": nil}, replayed())
	last := ""
	for range 2 {
		for _, reason := range []string{"unknown_unit", "measured_at_invalid", "not_parsable"} {
			require.Equal(t, "{\"replayed\":0}\n", m.run("rejects", "replay", "--reason", reason).out)
		}
		for _, at := range replayed() {
			require.Greater(t, at, last)
		}
		last = replayed()["not_parsable"].(string)
	}
	device := m.device(m.team, "dev:1")
	require.Equal(t, "{\"replayed\":1}\n", m.run("rejects", "replay", "--reason", "unknown_unit").out)
	require.Greater(t, replayed()["unknown_unit"], last)
	require.Equal(t, []string{"08:00 - - - 1 -"}, m.served(device))
	require.Equal(t, exitOK, m.run("rejects", "replay", "--reason", "measured_at_invalid").code)
	require.Equal(t, []string{"08:00 - - - 1 -"}, m.served(device))
	require.Len(t, m.data("rejects", "list"), 3)
}
