package mapping_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// Times are exact, in UTC, and truncated to microseconds (A11.5).
func TestTimeFormats(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.5")
	for _, c := range []struct{ format, zone, text, want string }{
		{"rfc3339", "", "2026-11-20T10:00:03Z", "2026-11-20T10:00:03Z"},
		{"rfc3339", "", "2026-11-20T10:00:03.1234567+05:45", "2026-11-20T04:15:03.123456Z"},
		{"rfc3339", "", "2026-11-20T10:00:03-00:30", "2026-11-20T10:30:03Z"},
		{"rfc3339", "", "2026-11-20T10:00:03", ""},
		{"rfc3339", "", "2026-11-20 10:00:03Z", ""},
		{"rfc3339", "", "2026-02-30T10:00:03Z", ""},
		{"rfc3339", "", "2026-11-20T1:00:03Z", ""},
		{"rfc3339", "", "2026-11-20T10:00:03,5Z", ""},
		{"rfc3339", "", "2026-11-20T10:00:03+25:00", ""},
		{"rfc3339", "", "1795168803", ""},
		{"rfc3339", "", "", ""},
		{"unix", "", "1795168803", "2026-11-20T10:00:03Z"},
		{"unix", "", "1795168803.1234569", "2026-11-20T10:00:03.123456Z"},
		{"unix", "", "1.795168803e9", "2026-11-20T10:00:03Z"},
		{"unix", "", "17951688031E-1", "2026-11-20T10:00:03.1Z"},
		{"unix", "", "001795168803", "2026-11-20T10:00:03Z"},
		{"unix", "", "-0.0000001", "1969-12-31T23:59:59.999999Z"},
		{"unix", "", "-1.5", "1969-12-31T23:59:58.5Z"},
		{"unix", "", "0e999999999999", "1970-01-01T00:00:00Z"},
		{"unix", "", "1e999999999999", ""},
		{"unix", "", "1e13", ""},
		{"unix", "", "1e-999999999999", "1970-01-01T00:00:00Z"},
		{"unix", "", "1795168803 ", ""},
		{"unix", "", "0x10", ""},
		{"unix", "", "", ""},
		{"unix_ms", "", "1795168803123", "2026-11-20T10:00:03.123Z"},
		{"unix_ms", "", "1795168803123.25", "2026-11-20T10:00:03.12325Z"},
		{"unix_us", "", "1795168803123456", "2026-11-20T10:00:03.123456Z"},
		{"unix_ns", "", "1795168803123456999", "2026-11-20T10:00:03.123456Z"},
		{"unix_ns", "", "999", "1970-01-01T00:00:00Z"},
		{"unix_ns", "", "-1", "1969-12-31T23:59:59.999999Z"},
		{"local", "Europe/Berlin", "2026-11-20T11:00:03", "2026-11-20T10:00:03Z"},
		{"local", "Europe/Berlin", "2026-11-20 11:00", "2026-11-20T10:00:00Z"},
		{"local", "Europe/Berlin", "2026-07-01T11:00:03.1234567", "2026-07-01T09:00:03.123456Z"},
		{"local", "Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"},
		{"local", "Europe/Berlin", "2026-10-25T01:59:59", "2026-10-24T23:59:59Z"},
		{"local", "Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"},
		{"local", "Europe/Berlin", "2026-03-29T02:30:00", "2026-03-29T01:30:00Z"},
		{"local", "Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"},
		{"local", "Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"},
		{"local", "America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"},
		{"local", "Australia/Lord_Howe", "2026-04-05T01:45:00", "2026-04-04T14:45:00Z"},
		{"local", "Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T22:00:00Z"},
		{"local", "Europe/Berlin", "2026-11-20T11:00:03Z", ""},
		{"local", "Europe/Berlin", "2026-11-20T11:00:03+01:00", ""},
		{"local", "Europe/Berlin", "2026-11-20", ""},
		{"local", "Europe/Berlin", "2026-11-20x11:00", ""},
	} {
		f, err := mapping.NewTimeFormat(c.format, c.zone)
		require.NoError(t, err)
		at, ok := f.Parse([]byte(c.text))
		require.Equal(t, c.want != "", ok, "%s %s", c.format, c.text)
		if ok {
			require.Equal(t, c.want, at.Format(time.RFC3339Nano), "%s %s", c.format, c.text)
			require.Equal(t, time.UTC, at.Location())
		}
	}
}

// The first alternative that is not null counts; without any, the arrival does. Times out of range are not a problem of
// the mapping (A11.5).
func TestTimes(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"unit":"u","metrics":{"lux":[{"path":"v"}]},"at":[{"path":"a","format":"rfc3339"},{"path":"b","format":"unix"}]}`)
	const outside = roomsensor.ReasonMeasuredAtOutOfRange
	for members, want := range map[string]string{
		`"a":"2026-11-20T09:00:00Z","b":1`: "2026-11-20T09:00:00Z",
		`"a":null,"b":"1795168803"`:        "2026-11-20T10:00:03Z",
		`"b":1795168803.5`:                 "2026-11-20T10:00:03.5Z",
		`"c":1`:                            "2026-11-20T10:00:09.123456Z",
		`"a":null,"b":null`:                "2026-11-20T10:00:09.123456Z",
		`"a":"","b":1`:                     `"a" is not a time in the format rfc3339.`,
		`"a":1795168803`:                   `"a" is not a time in the format rfc3339.`,
		`"b":true`:                         `"b" is not a time in the format unix.`,
		`"b":{}`:                           `"b" is not a time in the format unix.`,
		`"b":[1795168803]`:                 `"b" is not a time in the format unix.`,
		`"b":1e999999`:                     `"b" is not a time in the format unix.`,
		`"a":"2015-01-01T00:00:00Z"`:       "2015-01-01T00:00:00Z",
		`"a":"2014-12-31T23:59:59Z"`:       "2014-12-31T23:59:59Z " + string(outside),
		`"a":"2026-11-20T10:10:09.1Z"`:     "2026-11-20T10:10:09.1Z",
		`"a":"2026-11-20T10:10:09.2Z"`:     "2026-11-20T10:10:09.2Z " + string(outside),
	} {
		r := apply(m, `{"u":"x","v":1,`+members+`}`)
		if len(r.Problems) > 0 {
			require.Equal(t, want, r.Problems[0].Detail, members)
			continue
		}
		got := r.Measurements[0].MeasuredAt.Format(time.RFC3339Nano)
		if r.Measurements[0].Problem != "" {
			got += " " + string(r.Measurements[0].Problem)
		}
		require.Equal(t, want, got, members)
	}
}
