package mapping_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

const lineMapping = `{"input":"line_protocol","unit":"tags.u","at":[{"path":"timestamp","format":"unix_ns"}],
	"metrics":{"lux":[{"path":"fields.v"}],"co2_ppm":[{"path":"fields.c","when":{"path":"fields.ok","equals":true}}]}}`

// A line is an element. Its escapes are those of InfluxDB.
func TestLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`m,u=x v=1`:                            "x",
		`m,u=x v=1.5e2 1795168803000000000`:    "x",
		`  m,u=x   v=1   1795168803000000000 `: "x",
		`m,u=x v=1` + "\r":                     "x",
		`m\ n\,o=p,u=x v=1`:                    "x",
		`"m",u="x" v=1`:                        `"x"`,
		`m,u=a\ b\,c\=d\e v=1`:                 `a b,c=d\e`,
		`m,t\ \=\,=1,u=x v=1`:                  "x",
		`m,u=界 v=1`:                            "界",
		`m,u=x s="a, b=c \"d\" \\ \e",v=1`:     "x",
		`m,u=x v\ w=2,v=1`:                     "x",
		`m,u=x v=1i`:                           "x",
		`m,u=x v=1u`:                           "x",
		`m,u=x v=-0i`:                          "x",
		`m,u=x v="1"`:                          "x",
		`m,u=x,t=# v=1`:                        "x",
	} {
		r := apply(parse(t, lineMapping), line)
		require.Empty(t, r.Problems, line)
		require.Equal(t, want, r.Measurements[0].Unit, line)
		_, ok := r.Measurements[0].Values.Get(roomsensor.Lux)
		require.True(t, ok, line)
	}
	for _, spelling := range []string{"t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"} {
		r := apply(parse(t, lineMapping), "m,u=x ok="+spelling+",c=612")
		require.Len(t, r.Measurements, 1-len(r.Problems))
		require.Equal(t, strings.EqualFold(spelling[:1], "t"), len(r.Problems) == 0, spelling)
	}
}

// A line that cannot be parsed is a problem with its number and text.
func TestLineProblems(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a", 300)
	for line, want := range map[string]string{
		`,u=x v=1`:                      "the measurement is missing",
		`m`:                             "the fields are missing",
		`m,u=x`:                         "the fields are missing",
		`m,u=x v`:                       `the tag or field "v" has no value`,
		`m,u=x v=`:                      `the field "v" is not a number, a text in quotes or a boolean`,
		`m,u=x v=1,`:                    "a tag or field has no name",
		`m,u=x =1`:                      "a tag or field has no name",
		`m,=x v=1`:                      "a tag or field has no name",
		`m,u= v=1`:                      `the tag or field "u" has no value`,
		`m,u v=1`:                       `the tag or field "u" has no value`,
		`m,u=x=y v=1`:                   "the fields are missing",
		`m,u=x,u=y v=1`:                 `the tag or field "u" occurs twice`,
		`m,u=x v=1,\v=2,v=3`:            `the tag or field "v" occurs twice`,
		`m,u=x v=-1u`:                   `the field "v" is not a number, a text in quotes or a boolean`,
		`m,u=x v=1.5i`:                  `the field "v" is not a number, a text in quotes or a boolean`,
		`m,u=x v=NaN`:                   `the field "v" is not a number, a text in quotes or a boolean`,
		`m,u=x v=tRUE`:                  `the field "v" is not a number, a text in quotes or a boolean`,
		`m,u=x v="1`:                    `the text of the field "v" has no end`,
		`m,u=x v="1\"`:                  `the text of the field "v" has no end`,
		`m,u=x v="1"2`:                  "a field is followed by something else than a comma or a blank",
		`m,u=x v=1 now`:                 "the time is not a whole number of 64 bits in nanoseconds",
		`m,u=x v=1 1.5`:                 "the time is not a whole number of 64 bits in nanoseconds",
		`m,u=x v=1 1 2`:                 "the time is not a whole number of 64 bits in nanoseconds",
		`m,u=x v=1 9223372036854775808`: "the time is not a whole number of 64 bits in nanoseconds",
		"m,u=x v=1\xff":                 "it is not valid UTF-8",
	} {
		r := apply(parse(t, lineMapping), "#\n\n"+line+"\nm,u=x v=1\n")
		require.Len(t, r.Problems, 1, line)
		require.True(t, strings.HasPrefix(r.Problems[0].Detail, "Line 3 cannot be parsed, "+want+": "), r.Problems[0].Detail)
		require.Equal(t, line, string(r.Part(r.Problems[0].Element)))
		require.Len(t, r.Measurements, 1)
		require.Equal(t, 1, r.Measurements[0].Element)
		require.True(t, roomsensor.IsPlain(r.Problems[0].Detail))
	}
	require.LessOrEqual(t, len(apply(parse(t, lineMapping), many+many).Problems[0].Detail), 300)
	var fields []string
	for i := range 257 {
		fields = append(fields, strings.Repeat("f", i+1)+"=1")
	}
	r := apply(parse(t, lineMapping), "m "+strings.Join(fields, ","))
	require.Contains(t, r.Problems[0].Detail, "it has more than 256 tags or fields")
	r = apply(parse(t, lineMapping), "m,u=x v=1,"+strings.Join(fields[:255], ","))
	require.Len(t, r.Measurements, 1)
}

// Times have the precision of the request; the default is nanoseconds.
func TestPrecision(t *testing.T) {
	t.Parallel()
	m := parse(t, lineMapping)
	for text, stamp := range map[string]string{
		"": "1795168803123456000", "ns": "1795168803123456000", "n": "1795168803123456000", "us": "1795168803123456", "u": "1795168803123456",
		"ms": "1795168803123", "s": "1795168803",
	} {
		precision, ok := mapping.ParsePrecision(text)
		require.True(t, ok)
		r := m.Apply(mapping.Message{Text: []byte("m,u=x v=1 " + stamp), ArrivedAt: arrived, Precision: precision})
		want := time.Date(2026, time.November, 20, 10, 0, 3, 123456000, time.UTC)
		switch text {
		case "ms":
			want = want.Truncate(time.Millisecond)
		case "s":
			want = want.Truncate(time.Second)
		}
		require.Equal(t, want, r.Measurements[0].MeasuredAt, text)
	}
	for _, text := range []string{"m", "h", "NS", " ", "µs"} {
		_, ok := mapping.ParsePrecision(text)
		require.False(t, ok, text)
	}
	r := m.Apply(mapping.Message{Text: []byte("m,u=x v=1 9223372037"), Precision: mapping.Seconds})
	require.Contains(t, r.Problems[0].Detail, "the time is not a whole number")
	require.Equal(t, time.Date(2026, time.November, 20, 10, 0, 9, 123456000, time.UTC), apply(m, "m,u=x v=1").Measurements[0].MeasuredAt)
}

// A message may have 50,000 lines; a part of it has some of them.
func TestManyLines(t *testing.T) {
	t.Parallel()
	m := parse(t, lineMapping)
	r := apply(m, "\ufeff# begin\n"+strings.Repeat("m,u=x v=1\n\n", 49_999)+"m,u=y v=2")
	require.Len(t, r.Measurements, 50_000)
	require.Equal(t, "m,u=x v=1\nm,u=y v=2", string(r.Part(49_998, 49_999)))
	r = apply(m, strings.Repeat("m,u=x v=1\n", 50_001))
	require.Empty(t, r.Measurements)
	require.Equal(t, []mapping.Problem{{Element: mapping.WholeMessage, Detail: "The message has more than 50000 lines with measurements."}}, r.Problems)
	require.Equal(t, 50_001, strings.Count(string(r.Part(mapping.WholeMessage)), "\n"))
}

// A key that a sender pasted into its message is not repeated (decision 26).
func TestPastedKey(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"unit":"tags.u","metrics":{"lux":[{"path":"fields.v"}]},"input":"line_protocol"}`)
	for _, message := range []string{"rsi_abcdefgh_secret\n", `{"rsi_abcdefgh_secret":1,"rsi_abcdefgh_secret":2}`} {
		for _, m := range []*mapping.Mapping{m, parse(t, `{"unit":"u","metrics":{"lux":[{"path":"v"}]}}`)} {
			r := apply(m, message)
			require.Len(t, r.Problems, 1)
			require.NotContains(t, r.Problems[0].Detail, "secret")
		}
	}
}
