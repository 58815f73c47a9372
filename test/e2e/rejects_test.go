package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

const (
	tooOld              = `{"measured_at":"2014-12-31T23:59:59.999999Z","lux":9}`
	tooOldWithoutMetric = `{"measured_at":"2014-12-31T23:59:59.999999Z"}`
)

// badUploads are uploads that are stored only in part or not at all: the readings that are served, and the payload of
// each reject by reason (decision 41). UNIT stands for the unit of the device; unit is the subject of the message if it
// is another one. Package upload tests every cause of a reject. SOON and LATER stand for readings 9 and 20 minutes in the future.
var badUploads = []struct {
	name    string
	covers  []string
	unit    string
	text    string
	served  []string
	rejects map[string]string
}{
	{
		"values past their bounds",
		[]string{"decision 41 a 1", "decision 41 b", "decision 41 e"},
		"",
		`{"hardware_id":"UNIT","readings":[` + reading("08:00:00", `"co2_ppm":-1e-9,"temp_c":-90.0000001,"humidity_pct":-1,"lux":-0.1,"spl_db":-5`) + "," +
			reading("08:05:00", `"co2_ppm":1,"lux":2`) + "," +
			reading("08:10:00", `"co2_ppm":100000.00001,"temp_c":90.1,"humidity_pct":100.5,"lux":2e5,"spl_db":201`) + `]}`,
		[]string{"08:00 - - - - -", "08:05 1 - - 2 -", "08:10 - - - 200000 -"},
		map[string]string{"value_invalid": `{"hardware_id":"UNIT","readings":[` +
			reading("08:00:00", `"co2_ppm":-1e-9,"temp_c":-90.0000001,"humidity_pct":-1,"lux":-0.1,"spl_db":-5`) + "," +
			reading("08:10:00", `"co2_ppm":100000.00001,"temp_c":90.1,"humidity_pct":100.5,"lux":2e5,"spl_db":201`) + `]}`},
	}, {
		"times at and past their bounds",
		[]string{"decision 41 a 2", "decision 41 c", "decision 41 d"},
		"",
		`{"hardware_id":"UNIT","readings":[` + tooOld + "," + reading("08:00:00", `"lux":1`) + `,{"measured_at":"2015-01-01T00:00:00Z","lux":1},SOON,LATER]}`,
		[]string{"08:00 - - - 1 -"},
		map[string]string{"measured_at_out_of_range": `{"hardware_id":"UNIT","readings":[` + tooOld + `,LATER]}`},
	}, {
		"one reject per reason, with the fields of the upload",
		[]string{"decision 41 c", "decision 41 d", "decision 41 e", "decision 41 g", "decision 41 i", "decision 41 o"},
		"",
		`{ "note":{"a":[1, 2]},"signal":7,"readings" : [7, {"lux":1} ,` + tooOld + "," + reading("08:00:00", `"lux":"x"`) + "," + reading("08:05:00", `"lux":3`) +
			`], "sent_at":"now","hardware_id":"UNIT"}`,
		[]string{"08:00 - - - - -", "08:05 - - - 3 -"},
		map[string]string{
			"measured_at_invalid":      `{ "note":{"a":[1, 2]},"signal":7,"readings" : [7,{"lux":1}], "sent_at":"now","hardware_id":"UNIT"}`,
			"measured_at_out_of_range": `{ "note":{"a":[1, 2]},"signal":7,"readings" : [` + tooOld + `], "sent_at":"now","hardware_id":"UNIT"}`,
			"value_invalid":            `{ "note":{"a":[1, 2]},"signal":7,"readings" : [` + reading("08:00:00", `"lux":"x"`) + `], "sent_at":"now","hardware_id":"UNIT"}`,
			"field_invalid":            `{ "note":{"a":[1, 2]},"signal":7,"readings" : [], "sent_at":"now","hardware_id":"UNIT"}`,
		},
	}, {
		"not JSON",
		[]string{"decision 41 f", "decision 41 i"},
		"", `{"hardware_id":"UNIT","readings":[` + reading("08:00:00", "") + `]`, nil,
		map[string]string{"not_parsable": `{"hardware_id":"UNIT","readings":[` + reading("08:00:00", "") + `]`},
	}, {
		"hardware_id of another unit",
		[]string{"decision 41 f", "decision 41 i"},
		"", `{"hardware_id":"dev:404","readings":[` + reading("08:00:00", "") + `]}`, nil,
		map[string]string{"hardware_id_mismatch": `{"hardware_id":"dev:404","readings":[` + reading("08:00:00", "") + `]}`},
	}, {
		"too many readings",
		[]string{"decision 41 f", "decision 41 i"},
		"", `{"hardware_id":"UNIT","readings":[` + strings.Repeat("{},", 10_000) + reading("08:00:00", "") + `]}`, nil,
		map[string]string{"too_many_readings": `{"hardware_id":"UNIT","readings":[` + strings.Repeat("{},", 10_000) + reading("08:00:00", "") + `]}`},
	}, {
		"unknown unit, after the checks of time",
		[]string{"decision 41 i", "decision 41 j"},
		"dev:90001", `{"hardware_id":"dev:90001","readings":[{},` + tooOld + "," + reading("08:00:00", `"lux":"x"`) + `]}`, nil,
		map[string]string{
			"measured_at_invalid":      `{"hardware_id":"dev:90001","readings":[{}]}`,
			"measured_at_out_of_range": `{"hardware_id":"dev:90001","readings":[` + tooOld + `]}`,
			"unknown_unit":             `{"hardware_id":"dev:90001","readings":[` + reading("08:00:00", `"lux":"x"`) + `]}`,
		},
	}, {
		"unit in no device, after the checks of time",
		[]string{"decision 41 i", "decision 41 j"},
		"dev:90003", `{"hardware_id":"dev:90003","readings":[` + tooOld + `,{},` + reading("08:00:00", `"lux":"x"`) + `]}`, nil,
		map[string]string{
			"measured_at_invalid":      `{"hardware_id":"dev:90003","readings":[{}]}`,
			"measured_at_out_of_range": `{"hardware_id":"dev:90003","readings":[` + tooOld + `]}`,
			"not_installed":            `{"hardware_id":"dev:90003","readings":[` + reading("08:00:00", `"lux":"x"`) + `]}`,
		},
	}, {
		"without a metric, after the checks of unit and time",
		[]string{"decision 45 a", "decision 45 b", "decision 45 c", "decision 41 i", "decision 41 j"},
		"",
		`{"hardware_id":"UNIT","readings":[` + tooOldWithoutMetric + "," + reading("08:00:00", `"co2":640`) + "," +
			reading("08:05:00", `"co2":641,"lux":null`) + "," + reading("08:10:00", `"co2":642,"lux":"x"`) + `]}`,
		[]string{"08:05 - - - - -", "08:10 - - - - -"},
		map[string]string{
			"measured_at_out_of_range": `{"hardware_id":"UNIT","readings":[` + tooOldWithoutMetric + `]}`,
			"no_metric":                `{"hardware_id":"UNIT","readings":[` + reading("08:00:00", `"co2":640`) + `]}`,
			"value_invalid":            `{"hardware_id":"UNIT","readings":[` + reading("08:10:00", `"co2":642,"lux":"x"`) + `]}`,
		},
	}, {
		"without a metric, of a unit in no device",
		[]string{"decision 45 c"},
		"dev:90004", `{"hardware_id":"dev:90004","readings":[` + reading("08:00:00", `"co2":640`) + `]}`, nil,
		map[string]string{"not_installed": `{"hardware_id":"dev:90004","readings":[` + reading("08:00:00", `"co2":640`) + `]}`},
	}, {
		"refused by the database",
		[]string{"decision 41 c", "decision 41 d", "decision 41 i"},
		"", `{"hardware_id":"UNIT","readings":[` + reading("08:00:00", `"lux":13`) + "," + reading("08:05:00", `"lux":14`) + `]}`,
		[]string{"08:05 - - - 14 -"},
		map[string]string{"not_storable": `{"hardware_id":"UNIT","readings":[` + reading("08:00:00", `"lux":13`) + `]}`},
	},
}

// keptPayloads returns the payloads of the rejects of a unit by reason.
func (e *streamEnv) keptPayloads(unit string) map[string]string {
	e.t.Helper()
	kept := map[string]string{}
	found, err := e.sql.Query(e.t.Context(), "SELECT reason, convert_from(payload, 'UTF8') FROM rejected_uploads WHERE hardware_id = $1", unit)
	require.NoError(e.t, err)
	defer found.Close()
	for found.Next() {
		var reason, payload string
		require.NoError(e.t, found.Scan(&reason, &payload))
		require.NotContains(e.t, kept, reason, "one reject per upload and reason")
		kept[reason] = payload
	}
	require.NoError(e.t, found.Err())
	return kept
}

// TestBadUploads publishes every bad upload between good ones. Every reading that is good is stored, nothing is
// delivered twice, and a replay of the stream creates no second reject.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 41 l", "decision 41 o")
	e := newService(t)
	e.exec("ALTER TABLE readings ADD CONSTRAINT no_lux_13 CHECK (lux <> 13)")
	for _, unit := range []string{"dev:90003", "dev:90004"} {
		e.command("device", "remove-hardware", e.newDevice(unit), "--at", "2016-01-01T00:00:00Z")
	}
	after := func(d time.Duration) string {
		return fmt.Sprintf(`{"measured_at":%q,"lux":1}`, roomsensor.FormatTime(time.Now().Add(d)))
	}
	times := strings.NewReplacer("SOON", after(9*time.Minute), "LATER", after(20*time.Minute))
	units, devices := make([]string, len(badUploads)), make([]string, len(badUploads))
	goodUnit, goodDevice := e.newUnit()
	var good []string
	for i, tc := range badUploads {
		conformance.Covers(t, tc.covers...)
		units[i], devices[i] = e.newUnit()
		if tc.unit != "" {
			units[i] = tc.unit
		}
		e.publish(units[i], strings.ReplaceAll(times.Replace(tc.text), "UNIT", units[i]))
		at := day.Add(time.Duration(i) * roomsensor.BucketLength).Format("15:04")
		e.publishReadings(goodUnit, "", reading(at+":00", `"lux":1`))
		good = append(good, at+" - - - 1 -")
	}
	e.settle()
	consumer, err := e.stream().Consumer(t.Context(), queue.ConsumerName)
	require.NoError(t, err)
	require.Equal(t, uint64(2*len(badUploads)), consumer.CachedInfo().Delivered.Consumer, "no message was delivered twice")
	check := func() {
		t.Helper()
		require.Equal(t, good, e.served(goodDevice))
		for i, tc := range badUploads {
			require.Equal(t, tc.served, e.served(devices[i]), tc.name)
			kept := map[string]string{}
			for reason, text := range tc.rejects {
				kept[reason] = strings.ReplaceAll(times.Replace(text), "UNIT", units[i])
			}
			require.Equal(t, kept, e.keptPayloads(units[i]), tc.name)
		}
	}
	check()
	rejects := e.list("rejects", "list")
	e.replayStream()
	require.Equal(t, rejects, e.list("rejects", "list"))
	check()
}

// replay replays the rejects of a reason and returns how many were fully stored.
func (e *streamEnv) replay(reason string) int {
	e.t.Helper()
	return int(e.command("rejects", "replay", "--reason", reason)["replayed"].(float64))
}

// TestReplayRejects checks that a reject is stored once its cause is fixed. A replay that fails again creates no second
// reject and updates replayed_at. A unit of another team stays unknown.
func TestReplayRejects(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 41 k 1", "decision 41 k 2")
	e := newService(t)
	e.publishReadings("dev:1", "", reading("08:00:00", `"lux":1`), "{}")
	e.publish("dev:2", "hello")
	e.settle()
	replayedAt := func() map[string]any {
		at := map[string]any{}
		for _, reject := range e.list("rejects", "list") {
			at[reject["reason"].(string)] = reject["replayed_at"]
		}
		require.Len(t, at, 3)
		return at
	}
	require.Equal(t, map[string]any{"unknown_unit": nil, "measured_at_invalid": nil, "not_parsable": nil}, replayedAt())
	last := ""
	for range 2 {
		for _, reason := range []string{"unknown_unit", "measured_at_invalid", "not_parsable"} {
			require.Zero(t, e.replay(reason))
		}
		for _, at := range replayedAt() {
			require.Greater(t, at, last)
		}
		last = replayedAt()["not_parsable"].(string)
	}
	device := e.newDevice("dev:1")
	require.Equal(t, 1, e.replay("unknown_unit"))
	require.Greater(t, replayedAt()["unknown_unit"], last)
	require.Equal(t, []string{"08:00 - - - 1 -"}, e.served(device))
	require.Equal(t, 1, e.replay("unknown_unit"), "again, with the same result")
	e.replay("measured_at_invalid")
	require.Equal(t, []string{"08:00 - - - 1 -"}, e.served(device))
	require.Len(t, e.list("rejects", "list"), 3)

	other := e.newTeam(t)
	other.newDevice("dev:3")
	_, err := e.js.PublishMsg(t.Context(), &nats.Msg{
		Subject: "uploads." + e.team + ".dev:3",
		Data:    []byte(`{"hardware_id":"dev:3","readings":[` + reading("08:00:00", `"lux":3`) + `]}`),
	})
	require.NoError(t, err)
	e.settle()
	require.Equal(t, 1, e.replay("unknown_unit"), "only the one of dev:1")
	rejects := e.list("rejects", "list", "--hardware-id", "dev:3")
	require.Len(t, rejects, 1)
	require.Equal(t, e.team, rejects[0]["team_id"])
	require.Equal(t, 1, value[int](e.env, "SELECT count(*) FROM readings"))
}
