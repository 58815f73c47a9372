package upload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const unit = "dev:864475046552567"

var arrived = time.Date(2026, time.November, 20, 10, 0, 9, 123456000, time.UTC)

// with returns an upload of the unit with a text for its array readings.
func with(readings string) []byte {
	return []byte(`{"hardware_id":"` + unit + `","readings":` + readings + `}`)
}

func parse(t *testing.T, text []byte) *upload.Upload {
	t.Helper()
	u, refusal := upload.Parse(text, unit, arrived)
	require.Nil(t, refusal)
	return u
}

func TestParse(t *testing.T) {
	t.Parallel()
	u := parse(t, []byte(`{"hardware_id":"dev:864475046552567","sent_at":"2026-11-20T10:00:07Z","firmware_version":"2.4.1",
 "signal":{"rssi_dbm":-87,"bars":2},
 "readings":[{"measured_at":"2026-11-20T09:55:03Z","co2_ppm":612,"temp_c":21.4,"humidity_pct":40.1,"lux":120,"spl_db":38.2}]}`))

	require.Equal(t, unit, u.HardwareID)
	require.Equal(t, "2.4.1", *u.Firmware)
	require.Equal(t, int32(-87), *u.Signal.RSSI)
	require.Equal(t, int16(2), *u.Signal.Bars)
	require.Empty(t, u.BadFields)
	require.Len(t, u.Readings, 1)

	r := u.Readings[0]
	require.Equal(t, time.Date(2026, time.November, 20, 9, 55, 3, 0, time.UTC), r.MeasuredAt)
	require.Equal(t, []float32{612, 21.4, 40.1, 120, 38.2}, numbers(r.Values))
	require.Equal(t, uint8(31), r.Values.Mask())
	require.Zero(t, r.BadValues)
}

func numbers(v roomsensor.Values) (list []float32) {
	for _, m := range roomsensor.Metrics {
		if x, ok := v.Get(m); ok {
			list = append(list, x)
		}
	}
	return list
}

// The whole upload is rejected only for these reasons (decision 41).
func TestParseRefusals(t *testing.T) {
	t.Parallel()
	many := func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }
	cases := map[string]struct {
		text   string
		reason roomsensor.Reason
		detail string
	}{
		"nothing":                   {``, roomsensor.ReasonNotParsable, "The upload is empty."},
		"white space":               {" \n ", roomsensor.ReasonNotParsable, "The upload is empty."},
		"no JSON":                   {`hello`, roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 1."},
		"an array":                  {`[]`, roomsensor.ReasonNotParsable, "The upload is an array. Send one JSON object per line (JSON Lines), not an array."},
		"null":                      {`null`, roomsensor.ReasonNotParsable, "The upload is not a JSON object."},
		"cut off":                   {`{"hardware_id":"dev:1","readings":[`, roomsensor.ReasonNotParsable, "The upload ends before its JSON object does."},
		"more after it":             {`{"hardware_id":"dev:1","readings":[]} {}`, roomsensor.ReasonNotParsable, "There is text after the end of the JSON object, at byte 39."},
		"a comma after it":          {`{"hardware_id":"dev:1","readings":[]},`, roomsensor.ReasonNotParsable, "There is text after the end of the JSON object, at byte 38."},
		"NaN":                       {`{"hardware_id":"dev:1","readings":[{"lux":NaN}]}`, roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 43."},
		"a comma too much":          {`{"hardware_id":"dev:1","readings":[{},]}`, roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 38."},
		"invalid UTF-8":             {"{\"hardware_id\":\"dev:1\",\"readings\":[],\"note\":\"\xff\"}", roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 46."},
		"lone surrogate":            {`{"hardware_id":"dev:1","readings":[],"note":"\ud800"}`, roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 46."},
		"member twice":              {`{"hardware_id":"dev:1","readings":[],"readings":[]}`, roomsensor.ReasonNotParsable, `The upload names the member "readings" twice, at byte 38.`},
		"twice in a reading":        {`{"hardware_id":"dev:1","readings":[{"lux":1,"lux":1}]}`, roomsensor.ReasonNotParsable, `The upload names the member "lux" twice, at byte 45.`},
		"twice by an escape":        {`{"hardware_id":"dev:1","readings":[{"lux":1,"\u006cux":1}]}`, roomsensor.ReasonNotParsable, `The upload names the member "lux" twice, at byte 45.`},
		"twice in the signal":       {`{"hardware_id":"dev:1","readings":[],"signal":{"bars":1,"bars":1}}`, roomsensor.ReasonNotParsable, `The upload names the member "bars" twice, at byte 57.`},
		"twice in an unknown field": {`{"hardware_id":"dev:1","readings":[],"x":[{"a":{"b":1,"b":2}}]}`, roomsensor.ReasonNotParsable, `The upload names the member "b" twice, at byte 55.`},
		"no unit":                   {`{"readings":[]}`, roomsensor.ReasonNotParsable, "hardware_id is missing or is not a string."},
		"unit is a number":          {`{"hardware_id":1,"readings":[]}`, roomsensor.ReasonNotParsable, "hardware_id is missing or is not a string."},
		"unit is null":              {`{"hardware_id":null,"readings":[]}`, roomsensor.ReasonNotParsable, "hardware_id is missing or is not a string."},
		"another letter case":       {`{"Hardware_id":"dev:1","readings":[]}`, roomsensor.ReasonNotParsable, "hardware_id is missing or is not a string."},
		"no readings":               {`{"hardware_id":"dev:1"}`, roomsensor.ReasonNotParsable, "readings is missing or is not an array."},
		"readings is null":          {`{"hardware_id":"dev:1","readings":null}`, roomsensor.ReasonNotParsable, "readings is missing or is not an array."},
		"readings an object":        {`{"hardware_id":"dev:1","readings":{}}`, roomsensor.ReasonNotParsable, "readings is missing or is not an array."},
		"of another unit":           {`{"hardware_id":"dev:2","readings":[]}`, roomsensor.ReasonHardwareIDMismatch, `hardware_id is "dev:2", but the upload was sent under the name "dev:1".`},
		"of an empty unit":          {`{"hardware_id":"","readings":[]}`, roomsensor.ReasonHardwareIDMismatch, `hardware_id is "", but the upload was sent under the name "dev:1".`},
		"too many":                  {`{"hardware_id":"dev:1","readings":` + many(10_001) + `}`, roomsensor.ReasonTooManyReadings, "The upload has 10001 readings; at most 10000 are allowed."},
		"mismatch goes first":       {`{"hardware_id":"dev:2","readings":` + many(10_001) + `}`, roomsensor.ReasonHardwareIDMismatch, `hardware_id is "dev:2", but the upload was sent under the name "dev:1".`},
		"parsing goes first":        {`{"hardware_id":"dev:2","readings":` + many(10_001) + `,}`, roomsensor.ReasonNotParsable, "The upload is not valid JSON, at byte 30039."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, refusal := upload.Parse([]byte(c.text), "dev:1", arrived)
			require.Nil(t, u)
			require.Equal(t, &upload.Refusal{Reason: c.reason, Detail: c.detail}, refusal)
		})
	}
}

func TestParseLargestUpload(t *testing.T) {
	t.Parallel()
	u := parse(t, with("["+strings.Repeat("{},", 9_999)+"{}]"))
	require.Len(t, u.Readings, 10_000)
}

// measured_at is missing, malformed or outside its range (decision 41).
func TestParseTimes(t *testing.T) {
	t.Parallel()
	invalid, outside := roomsensor.ReasonMeasuredAtInvalid, roomsensor.ReasonMeasuredAtOutOfRange
	cases := map[string]roomsensor.Reason{
		`{}`:                      invalid,
		`1`:                       invalid,
		`null`:                    invalid,
		`[{}]`:                    invalid,
		`{"measured_at":null}`:    invalid,
		`{"measured_at":171}`:     invalid,
		`{"measured_at":{"a":1}}`: invalid,
		`{"measured_at":"2026-11-20T09:55:03+00:00"}`:        invalid,
		`{"measured_at":"2026-11-20T09:55Z"}`:                invalid,
		`{"measured_at":"2026-11-20 09:55:03Z"}`:             invalid,
		`{"measured_at":"2026-02-30T09:55:03Z"}`:             invalid,
		`{"measured_at":"1970-01-01T00:00:00Z"}`:             outside,
		`{"measured_at":"2014-12-31T23:59:59.999999999Z"}`:   outside,
		`{"measured_at":"2015-01-01T00:00:00Z"}`:             "",
		`{"measured_at":"2026-11-20T10:10:09.123456Z"}`:      "",
		`{"measured_at":"2026-11-20T10:10:09.1234569Z"}`:     "", // Digits after the microsecond are ignored.
		`{"measured_at":"2026-11-20T10:10:09.123457Z"}`:      outside,
		`{"measured_at":"9999-12-31T23:59:59Z"}`:             outside,
		`{"measured\u005fat":"2026-11-20T09:5\u0035:03Z"}`:   "",
		`{"Measured_At":"2026-11-20T09:55:03Z"}`:             invalid,
		`{"lux":1e999,"measured_at":"2026-11-20T09:55:03Z"}`: "",
	}
	for text, problem := range cases {
		u := parse(t, with("["+text+"]"))
		require.Len(t, u.Readings, 1, text)
		require.Equal(t, problem, u.Readings[0].Problem, text)
	}
}

// A value outside its range or not a number is absent and reported (decision 41). Values are stored as 32 bits
// (decision 37).
func TestParseValues(t *testing.T) {
	t.Parallel()
	const bad = -1 // an invalid value, which is reported
	cases := []struct {
		member string
		stored []float32 // nil: absent and not reported
	}{
		{`"lux":0`, []float32{0}},
		{`"lux":-0`, []float32{0}},
		{`"lux":-0.0`, []float32{0}},
		{`"lux":-1e-400`, []float32{0}},
		{`"lux":1e-46`, []float32{0}},
		{`"lux":null`, nil},
		{`"lux":200000`, []float32{200000}},
		{`"lux":2e5`, []float32{200000}},
		{`"lux":200000.0000001`, []float32{bad}}, // Rounding to 32 bits would hide it.
		{`"lux":-1e-300`, []float32{bad}},
		{`"lux":1e400`, []float32{bad}},
		{`"lux":-1e400`, []float32{bad}},
		{`"lux":"120"`, []float32{bad}},
		{`"lux":true`, []float32{bad}},
		{`"lux":[120]`, []float32{bad}},
		{`"lux":{"v":120}`, []float32{bad}},
		{`"LUX":"no metric"`, nil},
		{`"pressure":1e400`, nil},
		{`"temp_c":16777217`, []float32{bad}},
		{`"temp_c":21.400000001`, []float32{21.4}},
		{`"temp_c":-90`, []float32{-90}},
		{`"temp_c":-90.00001`, []float32{bad}},
		{`"temp_c":90`, []float32{90}},
		{`"temp_c":91`, []float32{bad}},
		{`"co2_ppm":100000`, []float32{100000}},
		{`"co2_ppm":100001`, []float32{bad}},
		{`"co2_ppm":-1`, []float32{bad}},
		{`"humidity_pct":100`, []float32{100}},
		{`"humidity_pct":100.1`, []float32{bad}},
		{`"spl_db":200`, []float32{200}},
		{`"spl_db":200.5`, []float32{bad}},
	}
	for _, c := range cases {
		u := parse(t, with(`[{"measured_at":"2026-11-20T09:55:03Z",`+c.member+`}]`))
		r := u.Readings[0]
		require.Empty(t, r.Problem, c.member)
		if len(c.stored) == 1 && c.stored[0] == bad {
			require.Empty(t, numbers(r.Values), c.member)
			require.NotZero(t, r.BadValues, c.member)
			continue
		}
		require.Equal(t, c.stored, numbers(r.Values), c.member)
		require.Zero(t, r.BadValues, c.member)
	}
}

func TestParseBadValues(t *testing.T) {
	t.Parallel()
	u := parse(t, with(`[{"spl_db":1e9,"lux":1,"temp_c":"x","measured_at":"2026-11-20T09:55:03Z"}]`))
	require.Equal(t, uint8(1<<roomsensor.Sound|1<<roomsensor.Temp), u.Readings[0].BadValues)
	require.Equal(t, uint8(1<<roomsensor.Temp), u.Readings[0].NotNumbers)
	require.Equal(t, uint8(1<<roomsensor.Lux), u.Readings[0].Values.Mask())
}

// A malformed signal, sent_at or firmware_version is ignored and reported (decision 41).
func TestParseFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 64)
	cases := []struct {
		member   string
		bad      []string
		rssi     string
		firmware string
	}{
		{member: `"sent_at":"2026-11-20T09:55:03Z"`},
		{member: `"sent_at":null`},
		{member: `"sent_at":1`, bad: []string{"sent_at"}},
		{member: `"sent_at":"yesterday"`, bad: []string{"sent_at"}},
		{member: `"firmware_version":"2.4.1-rc_1+b"`, firmware: "2.4.1-rc_1+b"},
		{member: `"firmware_version":"` + long + `"`, firmware: long},
		{member: `"firmware_version":"1` + long + `"`, bad: []string{"firmware_version"}},
		{member: `"firmware_version":""`, bad: []string{"firmware_version"}},
		{member: `"firmware_version":"2 4"`, bad: []string{"firmware_version"}},
		{member: `"firmware_version":"2.4\u0000"`, bad: []string{"firmware_version"}},
		{member: `"firmware_version":24`, bad: []string{"firmware_version"}},
		{member: `"firmware_version":null`},
		{member: `"signal":null`},
		{member: `"signal":{}`},
		{member: `"signal":{"rssi_dbm":null,"bars":null}`},
		{member: `"signal":{"rssi_dbm":-87,"bars":2}`, rssi: "-87/2"},
		{member: `"signal":{"rssi_dbm":-87.0,"bars":0,"cell":[1]}`, rssi: "-87/0"},
		{member: `"signal":{"rssi_dbm":-113}`, rssi: "-113/none"},
		{member: `"signal":{"bars":5}`, rssi: "none/5"},
		{member: `"signal":{"rssi_dbm":12,"bars":5}`, rssi: "12/5"},
		{member: `"signal":{"rssi_dbm":-87,"bars":6}`, bad: []string{"signal"}},
		{member: `"signal":{"rssi_dbm":-87,"bars":-1}`, bad: []string{"signal"}},
		{member: `"signal":{"rssi_dbm":-87.5}`, bad: []string{"signal"}},
		{member: `"signal":{"rssi_dbm":"-87"}`, bad: []string{"signal"}},
		{member: `"signal":{"rssi_dbm":-2147483648}`, bad: []string{"signal"}},
		{member: `"signal":{"rssi_dbm":1e400}`, bad: []string{"signal"}},
		{member: `"signal":[-87,2]`, bad: []string{"signal"}},
		{member: `"signal":-87`, bad: []string{"signal"}},
		{member: `"signal":1,"sent_at":1,"firmware_version":1`, bad: []string{"sent_at", "firmware_version", "signal"}},
		{member: `"battery":"unknown fields are ignored"`},
	}
	for _, c := range cases {
		u := parse(t, []byte(`{"hardware_id":"`+unit+`",`+c.member+`,"readings":[]}`))
		require.Equal(t, c.bad, u.BadFields, c.member)
		require.Equal(t, c.rssi, describe(u.Signal), c.member)
		if c.firmware == "" {
			require.Nil(t, u.Firmware, c.member)
		} else {
			require.Equal(t, c.firmware, *u.Firmware, c.member)
		}
	}
}

func describe(s *roomsensor.Signal) string {
	if s == nil {
		return ""
	}
	rssi, bars := "none", "none"
	if s.RSSI != nil {
		rssi = fmt.Sprint(*s.RSSI)
	}
	if s.Bars != nil {
		bars = fmt.Sprint(*s.Bars)
	}
	return rssi + "/" + bars
}

// A reject holds the upload's fields with only some readings, as they were sent (decision 41).
func TestPart(t *testing.T) {
	t.Parallel()
	text := `{ "readings" : [ {"lux": 1.50} , 2,{"a":"]"} ] , "hardware_id":"` + unit + `", "x":1e400 }`
	u := parse(t, []byte(text))

	require.Equal(t, strings.Replace(text, `[ {"lux": 1.50} , 2,{"a":"]"} ]`, `[{"lux": 1.50},{"a":"]"}]`, 1), string(u.Part([]int{0, 2})))
	require.Equal(t, strings.Replace(text, `[ {"lux": 1.50} , 2,{"a":"]"} ]`, `[]`, 1), string(u.Part(nil)))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	heading, err := upload.Check(with(`[{"measured_at":"nonsense is for the worker"},3]`))
	require.Nil(t, err)
	require.Equal(t, upload.Heading{HardwareID: unit, Readings: 2}, heading)

	cases := map[string]struct {
		text string
		code roomsensor.Code
	}{
		"no JSON":            {`{"hardware_id":"dev:1","readings":[`, roomsensor.CodeValidationFailed},
		"a member twice":     {`{"hardware_id":"dev:1","readings":[{"a":1,"a":1}]}`, roomsensor.CodeValidationFailed},
		"a unit of no form":  {`{"hardware_id":"dev:x","readings":[]}`, roomsensor.CodeValidationFailed},
		"a unit of a length": {`{"hardware_id":"dev:123456789012345678901","readings":[]}`, roomsensor.CodeValidationFailed},
		"no unit":            {`{"readings":[]}`, roomsensor.CodeValidationFailed},
		"no readings":        {`{"hardware_id":"dev:1","readings":{}}`, roomsensor.CodeValidationFailed},
		"too many readings":  {`{"hardware_id":"dev:1","readings":[` + strings.Repeat("1,", 10_000) + `1]}`, roomsensor.CodeRequestTooLarge},
		"too many bytes":     {`{"hardware_id":"dev:1","readings":[],"x":"` + strings.Repeat("x", 1_000_000) + `"}`, roomsensor.CodeRequestTooLarge},
	}
	for name, c := range cases {
		_, err := upload.Check([]byte(c.text))
		require.NotNil(t, err, name)
		require.Equal(t, c.code, err.Code, name)
	}
}

func TestCheckSizeLimit(t *testing.T) {
	t.Parallel()
	text := `{"hardware_id":"dev:1","readings":[],"x":"`
	text += strings.Repeat("x", roomsensor.MaxUploadBytes-len(text)-2) + `"}`
	require.Len(t, text, roomsensor.MaxUploadBytes)
	_, err := upload.Check([]byte(text))
	require.Nil(t, err)
	_, err = upload.Check([]byte(text + " "))
	require.NotNil(t, err)
}
