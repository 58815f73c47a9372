package mapping_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// valueAt maps a message with one path for the metric lux, and returns its value.
func valueAt(t *testing.T, path, message string) (float32, bool) {
	t.Helper()
	quoted, err := json.Marshal(path)
	require.NoError(t, err)
	m := parse(t, `{"unit":"u","metrics":{"lux":[{"path":`+string(quoted)+`}]}}`)
	r := apply(m, message)
	if len(r.Measurements) == 0 {
		require.Len(t, r.Problems, 1)
		return 0, false
	}
	return r.Measurements[0].Values.Get(roomsensor.Lux)
}

// A path is names and indexes joined by dots (A11.2).
func TestPaths(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.2")
	const message = `{"u":"x","a":{"b":1,"b.c":2,"0":3,"-1":4,"\u0064\"":5,"e\\f":6,"":{"g":7}},"list":[10,[20,21],{"c":30}],"A":{"b":8},"$":{"b":9},"$a":{"b":11}}`
	for path, want := range map[string]float32{
		"a.b": 1, `a.b\.c`: 2, "a.0": 3, "a.-1": 4, `a.d"`: 5, `a.e\\f`: 6, "A.b": 8, "$.a.b": 1, "$.$.b": 9, "$a.b": 11,
		"list.0": 10, "list.-3": 10, "list.1.1": 21, "list.1.-1": 21, "list.2.c": 30, "list.-1.c": 30, "list.00": 10,
	} {
		got, ok := valueAt(t, path, message)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{
		"a.B", "a.b.c", "a.d", "list.3", "list.-4", "list.x", "list.1.c", "b", "list.4294967296", "a.b\\.c.d", "u.0", "$",
	} {
		_, ok := valueAt(t, path, message)
		require.False(t, ok, path)
	}
}

// each names a list of measurements; without one, the message is the element (A11.3).
func TestEach(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.3")
	m := parse(t, `{"each":["a.list","list","$"],"unit":["id","$.id"],"metrics":{"lux":[{"path":"v"}]}}`)
	for message, want := range map[string]string{
		`{"list":[{"id":"x","v":1},{"id":"y","v":2}]}`:                             "x=1 y=2",
		`{"id":"z","a":{"list":[{"v":1},{"id":null,"v":2}]},"list":[{}]}`:          "z=1 z=2",
		`{"id":"z","a":{"list":null},"list":[{"v":1}]}`:                            "z=1",
		`[{"id":"x","v":1},{"id":"y","v":2}]`:                                      "x=1 y=2",
		`{"id":"z","v":1,"a":{"list":[]}}`:                                         "",
		`{"id":"z","list":[{"v":1},null,[1],"v",{"v":3}]}`:                         "z=1 1! 2! 3! z=3",
		`{"id":"z","list":{"v":1}}`:                                                "-1!",
		`{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 50_001), ",") + `]}`: "-1!",
	} {
		require.Equal(t, want, summary(apply(m, message)), "%.200s", message)
	}
	require.Equal(t, `The measurements are missing: no list at "a.list", "list", "$".`, apply(m, `{"list":7}`).Problems[0].Detail)
	without := parse(t, `{"each":"list","unit":"id","metrics":{"lux":[{"path":"v"}]}}`)
	require.Equal(t, "z=1", summary(apply(without, `{"id":"z","v":1}`)))
}

// summary shows measurements as unit=lux, and problems as element!, in the order of the elements.
func summary(r *mapping.Result) string {
	var parts []string
	problems := r.Problems
	for i := range r.Measurements {
		m := &r.Measurements[i]
		for len(problems) > 0 && problems[0].Element < m.Element {
			parts, problems = append(parts, fmt.Sprintf("%d!", problems[0].Element)), problems[1:]
		}
		lux, _ := m.Values.Get(roomsensor.Lux)
		parts = append(parts, fmt.Sprintf("%s=%v", m.Unit, lux))
	}
	for _, p := range problems {
		parts = append(parts, fmt.Sprintf("%d!", p.Element))
	}
	return strings.Join(parts, " ")
}

// A unit is text or a whole number, which keeps its digits (A11.4).
func TestUnits(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.4")
	m := parse(t, `{"unit":["a","b"],"metrics":{"lux":[{"path":"v"}]}}`)
	const bad = `"a" is not a unit: a unit is a whole number, or text of 1 to 200 characters without control characters.`
	const missing = `The unit is missing: no value at "a", "b".`
	for unit, want := range map[string]string{
		`"a":"x"`: "x", `"a":" é\u0020"`: " é ", `"a":12345678901234567890123`: "12345678901234567890123", `"a":-7`: "-7", `"a":0`: "0",
		`"b":"y"`: "y", `"a":null,"b":"y"`: "y", `"a":"","b":"y"`: "y", `"a":"unknown","b":"y"`: "unknown",
		`"a":1.0`: bad, `"a":1e3`: bad, `"a":true,"b":"y"`: bad, `"a":{}`: bad, `"a":["x"]`: bad, `"a":"x\u0000"`: bad, `"a":"x\n"`: bad,
		`"a":"` + strings.Repeat("界", 201) + `"`: bad, `"a":"` + strings.Repeat("界", 200) + `"`: strings.Repeat("界", 200),
		`"c":"x"`: missing, `"a":null`: missing, `"a":"","b":""`: missing,
	} {
		r := apply(m, `{"v":1,`+unit+`}`)
		if len(r.Problems) > 0 {
			require.Equal(t, want, r.Problems[0].Detail, unit)
			continue
		}
		require.Equal(t, want, r.Measurements[0].Unit, unit)
	}
}

// A value is a number or decimal text, times scale plus offset (A11.6).
func TestValues(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.6", "A11.9")
	plain := parse(t, `{"unit":"u","metrics":{"lux":[{"path":"a"},{"path":"b"}],"co2_ppm":[{"path":"c"}]}}`)
	const none, badLux = "none", "bad"
	for values, want := range map[string]any{
		`"a":1`: 1.0, `"a":1.5e2`: 150.0, `"a":"1.5e2"`: 150.0, `"a":"+.5"`: 0.5, `"a":"7."`: 7.0, `"a":-0.0`: 0.0, `"a":"200000"`: 200_000.0,
		`"a":0.1`: float64(float32(0.1)), `"a":16777217.0e-3`: float64(float32(16777.217)), `"a":1e-999999`: 0.0,
		`"a":1.00000005960464477539062500001`: 1.00000011920928955078125, // Rounded once, not to 64 bits before.
		`"a":null,"b":2`:                      2.0, `"b":2`: 2.0, `"a":"","b":2`: 2.0, `"a":"NaN","b":2`: 2.0, `"a":"unknown","b":"2"`: 2.0, `"a":"unav\u0061ilable","b":2`: 2.0,
		`"a":-1`: badLux, `"a":200000.1,"b":2`: badLux, `"a":1e999999,"b":2`: badLux, `"a":-1e999999`: badLux, `"a":"1e999999"`: badLux,
		`"a":true,"b":2`: badLux, `"a":{},"b":2`: badLux, `"a":[1],"b":2`: badLux, `"a":"1,5","b":2`: badLux, `"a":" 1"`: badLux,
		`"a":"0x1"`: badLux, `"a":"1_0"`: badLux, `"a":"inf"`: badLux, `"a":"+-1"`: badLux, `"a":"."`: badLux, `"a":"1e"`: badLux, `"a":"nan "`: badLux,
		`"a":null`: none, `"x":1`: none, `"a":"null","b":"unknown"`: none,
	} {
		r := apply(plain, `{"u":"x","c":1,`+values+`}`)
		require.Len(t, r.Measurements, 1, values)
		m := &r.Measurements[0]
		x, ok := m.Values.Get(roomsensor.Lux)
		switch bad := m.BadValues&(1<<roomsensor.Lux) != 0; {
		case bad:
			require.Equal(t, want, badLux, values)
			require.False(t, ok)
		case !ok:
			require.Equal(t, want, none, values)
		default:
			require.Equal(t, want, float64(x), values)
			require.False(t, math.Signbit(float64(x)))
		}
	}
}

// scale and offset are in double precision, and the range is that of the result (A11.6).
func TestScale(t *testing.T) {
	t.Parallel()
	scaled := parse(t, `{"unit":"u","metrics":{"temp_c":[{"path":"f","scale":0.5555555555555556,"offset":-17.77777777777778},{"path":"k","offset":-273.15},
		{"path":"c","scale":0.1},{"path":"x","scale":1e308}]}}`)
	for values, want := range map[string]float32{
		`"f":70`: 21.11111, `"f":"212"`: 0, `"k":294.15`: 21, `"c":214`: 21.4, `"f":-40`: -40, `"x":1e308`: 0, `"k":1e308`: 0, `"x":-1e308`: 0,
	} {
		r := apply(scaled, `{"u":"x",`+values+`}`)
		require.Len(t, r.Measurements, 1, values)
		got, ok := r.Measurements[0].Values.Get(roomsensor.Temp)
		require.Equal(t, ok, want != 0, values)
		require.Equal(t, !ok, r.Measurements[0].BadValues == 1<<roomsensor.Temp, values)
		require.Equal(t, want, got, values)
	}
}

// An alternative counts only where its condition holds, and nulls can be replaced (A11.6).
func TestWhen(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"unit":"u","nulls":["-"],"metrics":{"lux":[{"path":"v","scale":10,"when":{"path":["$.k","l"],"equals":"x"}},{"path":"v","scale":20,"when":{"path":"k","equals":1}},
		{"path":"v","scale":30,"when":{"path":"k","equals":true}},{"path":"v","scale":40,"when":{"path":"k","equals":null}}]}}`)
	for message, want := range map[string]string{
		`{"u":"u","v":2,"k":"x"}`:      "u=20",
		`{"u":"u","v":2,"k":"\u0078"}`: "u=20",
		`{"u":"u","v":2,"l":"x"}`:      "u=20",
		`{"u":"u","v":2,"k":1.0}`:      "u=40",
		`{"u":"u","v":2,"k":10e-1}`:    "u=40",
		`{"u":"u","v":2,"k":true}`:     "u=60",
		`{"u":"u","v":2,"k":null}`:     "u=80",
		`{"u":"u","v":2}`:              "0!",
		`{"u":"u","v":2,"k":"1"}`:      "0!",
		`{"u":"u","v":2,"k":false}`:    "0!",
		`{"u":"u","v":2,"k":{}}`:       "0!",
		`{"u":"u","v":"-","k":1}`:      "0!",
		`{"u":"u","v":"NaN","k":1}`:    "0!",
	} {
		require.Equal(t, want, summary(apply(m, message)), message)
	}
	require.Equal(t, `"v" has no usable value for lux: it must be a number.`, apply(m, `{"u":"u","v":"NaN","k":1}`).Problems[0].Detail)
	require.Equal(t, `No metric has a value: lux at "v", "v", "v" and 1 more.`, apply(m, `{"u":"u","v":"-","k":1}`).Problems[0].Detail)
}

// Signal and firmware version that do not fit are ignored (A11.7).
func TestSignal(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.7")
	m := parse(t, `{"unit":"u","metrics":{"lux":[{"path":"v"}]},"signal":{"rssi_dbm":["r","s"],"bars":"b"},"firmware_version":"f"}`)
	dbm, bars, version := int32(-87), int16(5), "v1.2_3+4-5"
	for members, want := range map[string]mapping.Heartbeat{
		`"r":-87`:                  {Signal: &roomsensor.Signal{RSSI: &dbm}},
		`"r":"-87.0","b":6`:        {Signal: &roomsensor.Signal{RSSI: &dbm}},
		`"r":null,"s":-87,"b":5`:   {Signal: &roomsensor.Signal{RSSI: &dbm, Bars: &bars}},
		`"r":-87.5,"b":5,"f":7`:    {Signal: &roomsensor.Signal{Bars: &bars}},
		`"r":-2147483648,"b":-1`:   {},
		`"r":{},"b":"x","f":"a b"`: {},
		`"r":1e999,"f":""`:         {},
		`"f":"v1.2_3+4-5"`:         {Firmware: &version},
	} {
		r := apply(m, `{"u":"x","v":1,`+members+`}`)
		require.Len(t, r.Measurements, 1)
		want.Unit = "x"
		require.Equal(t, want, r.Measurements[0].Heartbeat, members)
	}
}

// Ignored elements are counted and dropped; their signals count (A11.8). Elements without a value are problems, unless
// the mapping ignores them (A11.9).
func TestIgnore(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.8")
	const rest = `"unit":"u","metrics":{"lux":[{"path":"v"}]},"signal":{"bars":"b"}`
	m := parse(t, `{"each":"list",`+rest+`,"ignore":[{"path":"kind","equals":"join"},{"path":["$.up","$.rx"],"absent":true}]}`)
	r := apply(m, `{"up":1,"list":[{"u":"x","v":1},{"u":"y","kind":"join","b":3,"v":2},{"kind":"join","b":3},{"u":"z","kind":"join"},{"u":"x"}]}`)
	require.Equal(t, "x=1 4!", summary(r))
	require.Equal(t, 3, r.Ignored)
	require.Len(t, r.Heartbeats, 1)
	require.Equal(t, 1, r.Heartbeats[0].Element)
	require.Equal(t, int16(3), *r.Heartbeats[0].Signal.Bars)
	for message, ignored := range map[string]int{
		`{"u":"x","v":1}`: 1, `{"u":"x","v":1,"up":null}`: 1, `{"u":"x","v":1,"rx":0}`: 0, `{"list":[{"u":"x","v":1},{"u":"x","v":1}]}`: 2, `{"up":1,"list":[]}`: 1, `{"up":1,"u":"x","list":[]}`: 0,
	} {
		require.Equal(t, ignored, apply(m, message).Ignored, message)
	}
	require.Equal(t, []mapping.Heartbeat{{Element: mapping.WholeMessage, Unit: "x"}},
		apply(m, `{"u":"x","list":[]}`).Heartbeats, "a unit that has no readings was heard of")
	empty := parse(t, `{"empty":"ignore",`+rest+`}`)
	for message, want := range map[string][3]int{ // measurements, problems, ignored
		`{"u":"x"}`: {0, 0, 1}, `{}`: {0, 0, 1}, `7`: {0, 0, 1}, `{"v":null}`: {0, 0, 1}, `{"v":1}`: {0, 1, 0}, `{"u":"x","v":"1,5"}`: {0, 1, 0}, `{"u":"x","v":-1}`: {1, 0, 0},
	} {
		r := apply(empty, message)
		require.Equal(t, want, [3]int{len(r.Measurements), len(r.Problems), r.Ignored}, message)
	}
}

// Part keeps some elements of a message, and the mapping finds the same in it (A10.10).
func TestPart(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"each":"list","unit":"id","metrics":{"lux":[{"path":"v"}]},"firmware_version":"$.fw"}`)
	r := apply(m, "\ufeff"+`{"fw":"1", "list": [ {"id":"x","v":1} , "a\n]" ,{"id":"y","v":2}, 7 ] ,"end":0}`)
	require.Equal(t, "x=1 1! y=2 3!", summary(r))
	require.Equal(t, []string{
		`{"fw":"1", "list": [{"id":"x","v":1},{"id":"y","v":2}] ,"end":0}`, `{"fw":"1", "list": ["a\n]"] ,"end":0}`, `{"id":"x","v":1}`,
	}, []string{string(r.Part(0, 2)), string(r.Part(1)), string(apply(m, `{"id":"x","v":1}`).Part(0))})
	require.Equal(t, "x=1 y=2", summary(apply(m, string(r.Part(0, 2)))))
	require.Equal(t, `{"list":7}`, string(apply(m, `{"list":7}`).Part(mapping.WholeMessage)))
}

// A message that is not JSON is one problem, in bounded time and memory.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"each":"list","unit":"id","metrics":{"lux":[{"path":"v"},{"path":"$.a.b"}]}}`)
	for message, want := range map[string]string{
		``:                              "The message is empty, at byte 1.",
		`{"a":1,"a":2}`:                 `The message names the member "a" twice, at byte 8.`,
		`{"a":[{"b":1,"\u0062":2}]}`:    `The message names the member "b" twice, at byte 14.`,
		"{\"a\":\"\xff\"}":              "The message is not valid JSON, at byte 7.",
		`{"a":"\ud800"}`:                "The message is not valid JSON, at byte 7.",
		`{"a":NaN}`:                     "The message is not valid JSON, at byte 6.",
		`{"a":1} {}`:                    "The message has text after the end of its JSON value, at byte 9.",
		`{"a":[1,2`:                     "The message ends before its JSON value does, at byte 10.",
		strings.Repeat("[", 1_000_000):  "The message is not valid JSON, at byte 10001.",
		strings.Repeat(`{"":`, 250_000): "The message is not valid JSON, at byte 40001.",
		strings.Repeat(" ", 8_000_001):  "The message has 8000001 bytes; at most 8000000 are allowed.",
	} {
		r := apply(m, message)
		require.Equal(t, []mapping.Problem{{Element: mapping.WholeMessage, Detail: want}}, r.Problems, "%.50s", message)
		require.Equal(t, message, string(r.Part(mapping.WholeMessage)))
	}
}

// The most work that a message can make is linear in its size. Otherwise, this test takes minutes.
func TestLargestMessages(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var members strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&members, `"\u0061%d":1,`, i)
	}
	telegraf, _ := mapping.FormatNamed("telegraf")
	milesight, _ := mapping.FormatNamed("milesight")
	for _, message := range []string{
		`{"list":[` + strings.Repeat("{},", 49_999) + `{}],` + members.String() + `"id":"x"}`,
		`{"object":{"history":[` + strings.Repeat("{},", 49_999) + `{}]},` + members.String() + `"rxInfo":[]}`,
		`{"metrics":[` + strings.Repeat(`[1,2],`, 49_999) + `1]}`,
		`[` + strings.Repeat("0,", 400_000) + `0]`,
	} {
		for _, f := range []mapping.Format{telegraf, milesight} {
			r := apply(f.Mapping, message)
			require.LessOrEqual(t, len(r.Problems)+r.Ignored, 50_000)
			require.Empty(t, r.Measurements)
		}
	}
	require.Less(t, time.Since(began), 20*time.Second)
}

// Several goroutines use one mapping.
func TestApplyConcurrently(t *testing.T) {
	t.Parallel()
	f, _ := mapping.FormatNamed("roomsensor")
	message := file(t, "roomsensor/upload.json")
	want := show(apply(f.Mapping, message))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if got := show(apply(f.Mapping, message)); len(got.Measurements) != len(want.Measurements) {
					t.Errorf("%v, not %v", got, want)
				}
			}
		})
	}
	all.Wait()
}
