package mqtt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/mapping"
	"roomsensor/test/conformance"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A14.2")
	for payload, want := range map[string]string{
		`{"co2": 1,  "text": "<a & b>"}`: `{"co2":1,"text":"<a & b>"}`,
		`21.5`:                           `21.5`,
		`null`:                           `null`,
		"on":                             `"on"`,
		`{"co2":`:                        `"{\"co2\":"`,
		"":                               `""`,
		"a\xffb\x00":                     `"a` + "\uFFFD" + `b\u0000"`,
		"{\"a\":\"\xff\"}":               `{"a":"` + "\uFFFD" + `"}`,
	} {
		text := encode("a/b//ü", []byte(payload))
		require.Equal(t, `{"topic":"a/b//ü","levels":["a","b","","ü"],"payload":`+want+`}`, string(text))
		format, ok := mapping.FormatNamed("zigbee2mqtt")
		require.True(t, ok)
		require.Empty(t, format.Mapping.Apply(mapping.Message{Text: text}).Problems, "a mapping reads it")
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	topics := []string{"a", "a/b", "a/b/c", "a/", "/a", "b", "$SYS/a"}
	for filter, want := range map[string]string{
		"a": "a", "a/b": "a/b", "+": "a b", "a/+": "a/b a/", "a/#": "a a/b a/b/c a/", "#": "a a/b a/b/c a/ /a b",
		"+/+": "a/b a/ /a", "$SYS/#": "$SYS/a", "a/+/c": "a/b/c", "/+": "/a", "a/b/c/d": "",
	} {
		var got []string
		for _, topic := range topics {
			if matches(filter, topic) {
				got = append(got, topic)
			}
		}
		require.Equal(t, want, strings.Join(got, " "), filter)
	}
}
