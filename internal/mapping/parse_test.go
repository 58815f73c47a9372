package mapping_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
)

// with returns a valid mapping with more members.
func with(members string) string {
	return `{"unit":"u","metrics":{"co2_ppm":[{"path":"c"}]}` + members + `}`
}

// A mapping is checked when it is set, and an error names the position (A11.10).
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                 "The mapping is empty, at byte 1.",
		` `:                                "The mapping is empty, at byte 1.",
		`[]`:                               "The mapping must be an object, at byte 1.",
		`{"unit":"u"`:                      "The mapping ends before its JSON value does, at byte 12.",
		`{"unit":"u",}`:                    "The mapping is not valid JSON, at byte 12.",
		`{"unit":"u"} x`:                   "The mapping has text after the end of its JSON value, at byte 14.",
		`{"unit":"u","unit":"u"}`:          `The mapping names the member "unit" twice, at byte 13.`,
		"{\"unit\":\"\xff\"}":              "The mapping is not valid JSON, at byte 10.",
		`{}`:                               "unit is missing or empty, at byte 1.",
		`{"unit":[]}`:                      "unit is missing or empty, at byte 1.",
		`{"unit":"u"}`:                     "metrics is missing or empty, at byte 1.",
		`{"unit":"u","metrics":{}}`:        "metrics is missing or empty, at byte 1.",
		`{"unit":null}`:                    "unit must be a path, which is a text, at byte 9.",
		`{"unit":["a",1]}`:                 "unit[1] must be a path, which is a text, at byte 14.",
		`{"unit":"a..b"}`:                  "unit has an empty name: a path is member names joined by dots, such as body.co2, at byte 9.",
		`{"unit":""}`:                      "unit has an empty name: a path is member names joined by dots, such as body.co2, at byte 9.",
		`{"unit":"$."}`:                    "unit has an empty name: a path is member names joined by dots, such as body.co2, at byte 9.",
		`{"unit":"a\\b"}`:                  `unit has a backslash before another character than "." and "\", at byte 9.`,
		`{"unit":"a\\"}`:                   `unit has a backslash before another character than "." and "\", at byte 9.`,
		`{"units":"a"}`:                    "units is not a member of a mapping, at byte 10.",
		`{"Unit":"a"}`:                     "Unit is not a member of a mapping, at byte 9.",
		`{"metrics":{"co2":[]}}`:           "metrics.co2 is not a member of a mapping, at byte 19.",
		`{"metrics":{"lux":{"path":"a"}}}`: "metrics.lux must be a list, at byte 19.",
		`{"metrics":{"lux":["a"]}}`:        "metrics.lux[0] must be an object, at byte 20.",
		`{"metrics":{"lux":[{}]}}`:         "metrics.lux[0].path is missing or empty, at byte 20.",
		`{"metrics":{"lux":[{"path":"a"},{"path":7}]}}`:                        "metrics.lux[1].path must be a path, which is a text, at byte 41.",
		`{"metrics":{"lux":[{"path":"a","scale":"2"}]}}`:                       "metrics.lux[0].scale must be a number that fits into 64 bits, at byte 40.",
		`{"metrics":{"lux":[{"path":"a","scale":1e999}]}}`:                     "metrics.lux[0].scale must be a number that fits into 64 bits, at byte 40.",
		`{"metrics":{"lux":[{"path":"a","offset":-1e999}]}}`:                   "metrics.lux[0].offset must be a number that fits into 64 bits, at byte 41.",
		`{"metrics":{"lux":[{"path":"a","factor":1}]}}`:                        "metrics.lux[0].factor is not a member of a mapping, at byte 41.",
		`{"metrics":{"lux":[{"path":"a","when":{"path":"b"}}]}}`:               "metrics.lux[0].when must have equals, at byte 39.",
		`{"metrics":{"lux":[{"path":"a","when":{"path":"b","absent":true}}]}}`: "metrics.lux[0].when.absent is not a member of a mapping, at byte 60.",
		`{"metrics":{"lux":[{"path":"a","when":{"equals":1}}]}}`:               "metrics.lux[0].when.path is missing or empty, at byte 39.",
		`{"metrics":{"lux":[{"path":"a","when":{"path":"b","equals":[]}}]}}`:   "metrics.lux[0].when.equals must be a text, a number, true, false or null, at byte 60.",
		with(`,"ignore":[{"path":"b"}]`):                                       `ignore[0] must have either equals or "absent":true, at byte 60.`,
		with(`,"ignore":[{"path":"b","equals":1,"absent":true}]`):              `ignore[0] must have either equals or "absent":true, at byte 60.`,
		with(`,"ignore":[{"path":"b","absent":false}]`):                        "ignore[0].absent must be true, at byte 81.",
		with(`,"at":[{"format":"unix"}]`):                                      "at[0].path is missing or empty, at byte 56.",
		with(`,"at":[{"path":"t"}]`):                                           "at[0].format is missing or empty, at byte 56.",
		with(`,"at":[{"path":"t","format":"iso"}]`):                            `at[0] has the unknown format "iso": use rfc3339, unix, unix_ms, unix_us, unix_ns or local, at byte 56.`,
		with(`,"at":[{"path":"t","format":"local"}]`):                          "at[0] has the format local without a time_zone such as Europe/Berlin, at byte 56.",
		with(`,"at":[{"path":"t","format":"local","time_zone":"Berlin"}]`):     `at[0] has the unknown time_zone "Berlin": use an IANA name such as Europe/Berlin, at byte 56.`,
		with(`,"at":[{"path":"t","format":"local","time_zone":"Local"}]`):      `at[0] has the unknown time_zone "Local": use an IANA name such as Europe/Berlin, at byte 56.`,
		with(`,"at":[{"path":"t","format":"unix","time_zone":"UTC"}]`):         "at[0] has a time_zone, which only the format local takes, at byte 56.",
		with(`,"empty":"drop"`):                                                `empty must be "ignore" or "not_mapped", at byte 58.`,
		with(`,"sampling":"median"`):                                           `sampling must be "whole" or "mean", at byte 61.`,
		with(`,"input":"csv"`):                                                 `input must be "json" or "line_protocol", at byte 58.`,
		with(`,"description":1`):                                               "description must be a text, at byte 64.",
		with(`,"nulls":"x"`):                                                   "nulls must be a list, at byte 58.",
		with(`,"nulls":[null]`):                                                "nulls[0] must be a text, at byte 59.",
		with(`,"signal":{"rssi":"a"}`):                                         "signal.rssi is not a member of a mapping, at byte 67.",
		with(`,"a.b":1`):                                                       `a\.b is not a member of a mapping, at byte 56.`,
		with(`,"each":[` + strings.Repeat(`"a",`, 100) + `"a"]`):               "each has 101 elements; at most 100 are allowed, at byte 57.",
		with(`,"ignore":[` + strings.Repeat(`{"path":["a","b","c","d","e","f"],"equals":1},`, 83) + `{"path":["x"],"absent":true}]`): "ignore[83].path[0] is one path too many: at most 500 are allowed, at byte 3887.",
		strings.Repeat(" ", 65_537): "The mapping has 65537 bytes; at most 65536 are allowed, at byte 65537.",
	} {
		m, err := mapping.Parse([]byte(text))
		require.Nil(t, m)
		require.EqualError(t, err, want, text)
	}
}

// The mapping of a source replaces top-level members of its format (A11.1). The format does not change.
func TestWith(t *testing.T) {
	t.Parallel()
	base := parse(t, `{"description":"d","sampling":"mean","each":"list","unit":"u","at":[{"path":"t","format":"unix"}],
		"metrics":{"co2_ppm":[{"path":"c"}],"lux":[{"path":"l"}]},"signal":{"bars":"b"},"empty":"ignore"}`)
	changed, err := base.With([]byte(`{"each":[],"metrics":{"temp_c":[{"path":"t"}]},"at":[],"empty":"not_mapped"}`))
	require.NoError(t, err)
	require.Equal(t, "mean", changed.Sampling)
	const message = `{"u":"x","t":21,"c":612,"b":3,"list":[]}`
	require.Equal(t, `No metric has a value: temp_c at "t".`, apply(changed, `{"u":"x"}`).Problems[0].Detail)
	got := show(apply(changed, message)).Measurements
	require.Len(t, got, 1)
	require.Equal(t, map[string]float32{"temp_c": 21}, got[0].Values)
	require.Equal(t, int16(3), *got[0].Bars)
	require.Empty(t, apply(base, message).Measurements)
	_, err = base.With([]byte(`{"unit":[]}`))
	require.EqualError(t, err, "unit is missing or empty, at byte 1.")
}
