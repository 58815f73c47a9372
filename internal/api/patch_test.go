package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// patched are the fields of a device that PATCH changes.
type patched struct {
	DisplayName *string           `json:"display_name"`
	Metadata    map[string]string `json:"metadata"`
}

// device returns the changeable fields of the fixture's device.
func (f *fixture) device(t *testing.T) patched {
	t.Helper()
	return decode[patched](t, f.get(t, devicePath))
}

func quoted(r string, n int) string { return `"` + strings.Repeat(r, n) + `"` }

// A PATCH with a condition is refused, whatever the condition is (decision 50).
func TestConditionalPatch(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 50 b")
	f := setup(t)
	tag := f.get(t, devicePath).header.Get("ETag")
	for name, values := range map[string][]string{
		"If-Match": {tag, "*", `"x"`, ""}, "If-Unmodified-Since": {"Fri, 20 Nov 2026 10:00:00 GMT", "x", ""},
	} {
		for _, value := range values {
			f.patch(t, `{"display_name":"Never"}`, setHeader(name, value)).requireInvalid(t, name)
		}
	}
	require.Nil(t, f.device(t).DisplayName)
	conformance.Covers(t, "decision 50 a")
	f.patch(t, `{"metadata":{"a":"1"}}`).requireOK(t)
	f.patch(t, `{"metadata":{"b":"2"}}`).requireOK(t)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, f.device(t).Metadata)
}

func TestPatchDevice(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 21 a", "decision 21 b", "decision 21 c")
	conformance.Covers(t, "spec 4, patch, display_name, set", "spec 4, patch, display_name, null", "spec 4, patch, metadata",
		"spec 4, patch, response")
	f := setup(t)
	for body, want := range map[string]patched{
		`{"display_name":"Hall"}`:                                 {new("Hall"), map[string]string{"a": "1", "b": "2"}},
		`{"display_name":null}`:                                   {nil, map[string]string{"a": "1", "b": "2"}},
		`{"metadata":{}}`:                                         {new("Gym"), map[string]string{"a": "1", "b": "2"}},
		`{"metadata":null}`:                                       {new("Gym"), map[string]string{}},
		`{"metadata":{"a":null}}`:                                 {new("Gym"), map[string]string{"b": "2"}},
		`{"metadata":{"z":null}}`:                                 {new("Gym"), map[string]string{"a": "1", "b": "2"}},
		`{"metadata":{"a":"","c":"3"}}`:                           {new("Gym"), map[string]string{"a": "", "b": "2", "c": "3"}},
		`{"display_name":"\ud83d\ude00","metadata":{"b":null}}`:   {new("😀"), map[string]string{"a": "1"}},
		` { "metadata" : null , "display_name" : "x" } ` + "\r\n": {new("x"), map[string]string{}},
		`{"\u0064isplay_name":"y"}`:                               {new("y"), map[string]string{"a": "1", "b": "2"}},
	} {
		f.exec(t, `UPDATE devices SET display_name = 'Gym', metadata = '{"a":"1","b":"2"}'`)
		got := f.patch(t, body)
		require.Equal(t, want, decode[patched](t, got), body)
		require.Equal(t, string(f.get(t, devicePath).body), string(got.body), "the response is the updated Device")
	}
	// Without an Idempotency-Key, every request runs, and the later one wins.
	conformance.Covers(t, "spec 8, idempotency, rule 5", "spec 4, patch, idempotency_key")
	for _, name := range []string{"One", "Two", "One"} {
		got := f.patch(t, `{"display_name":"`+name+`"}`).requireOK(t)
		require.Empty(t, got.header.Get("Idempotent-Replayed"))
		require.Equal(t, name, *f.device(t).DisplayName)
	}
}

// badBodies are bodies that are refused, by the sentence that refuses them, with the param.
var badBodies = map[string]map[string]string{
	"decision 19 b 1": {
		``: "", " \n": "", `{}`: "", ` { } `: "", `null`: "", `[]`: "", `[{"display_name":"x"}]`: "", `"display_name"`: "", `1`: "", `true`: "",
		`{`: "", `}`: "", `{"display_name":"x"`: "", `{"display_name"}`: "", `{display_name:"x"}`: "", `{'display_name':'x'}`: "",
		`{"display_name":x}`: "", `{"display_name":"x" "metadata":{}}`: "", `/**/{"display_name":"x"}`: "", `{"display_name":"x",}`: "",
		`{"display_name":NaN}`: "", "{\"display_name\":\"x\x00\"}": "", "\xff": "", "\ufeff" + `{"display_name":"x"}`: "",
		"{\"display_name\":\"a\nb\"}": "", "{\"\xff\":1}": "", `{"x":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`: "",
	},
	"decision 19 c": {
		`{"display_name":"x","name":"y"}`: "name", `{"x":null,"display_name":"x"}`: "x", `{"metadata":{},"metadata.a":"x"}`: "metadata.a",
		`{"Metadata":{}}`: "Metadata", `{"Display_name":"x"}`: "Display_name", `{"display_name ":"x"}`: "display_name ",
		`{"device_id":"x"}`: "device_id", `{"\u0078":1}`: "x", `{"Assignment":1}`: "Assignment", `{"assignment_id":1}`: "assignment_id",
		`{"x":{"a":1,"a":1}}`: "x",
	},
	"decision 19 d": {
		`{"display_name":"x","display_name":"x"}`: "display_name", `{"display_name":null,"display_name":null}`: "display_name",
		`{"metadata":{},"metadata":null}`: "metadata", `{"metadata":{},"display_name":"x","\u006detadata":{}}`: "metadata",
		`{"metadata":{"a":"1","b":"2","a":"1"}}`: "metadata.a", `{"metadata":{"a":null,"\u0061":"1"}}`: "metadata.a",
		`{"metadata":{"a":null,"a":null}}`: "metadata.a",
	},
	"decision 19 b 2": {
		`{"display_name":"x"}{}`: "", `{"display_name":"x"} {"display_name":"y"}`: "", `{"display_name":"x"},`: "", `{"display_name":"x"}}`: "",
		`{"display_name":"x"} null`: "", `{"display_name":"x"}x`: "", `{"display_name":"x"}//`: "", "{\"display_name\":\"x\"}\x00": "",
		"{\"display_name\":\"x\"}\f": "", "{\"display_name\":\"x\"}\u00a0": "", "{\"display_name\":\"x\"}\ufeff": "", `{"assignment":0,}`: "",
	},
	"decision 19 e": {
		`{"display_name":1}`: "display_name", `{"display_name":true}`: "display_name", `{"display_name":["x"]}`: "display_name",
		`{"display_name":{"a":1,"a":2}}`: "display_name", `{"metadata":"{}"}`: "metadata", `{"metadata":0}`: "metadata",
		`{"metadata":false}`: "metadata", `{"metadata":[]}`: "metadata", `{"metadata":[{"a":"b"}]}`: "metadata",
		`{"metadata":{"a":1}}`: "metadata.a", `{"metadata":{"a":true}}`: "metadata.a", `{"metadata":{"a":[]}}`: "metadata.a",
		`{"metadata":{"a":{"b":"c"}}}`: "metadata.a", `{"metadata":{"b":"x","a":1.5}}`: "metadata.a",
		`{"display_name":"x","metadata":{"a":-0}}`: "metadata.a",
	},
	"decision 20 b 2": {
		`{"display_name":""}`: "display_name", `{"display_name":` + quoted("é", 201) + `}`: "display_name",
		`{"display_name":` + quoted(`\ud83d\ude00`, 201) + `}`: "display_name", "{\"display_name\":\"a\xff\"}": "display_name",
		`{"display_name":"\ud800"}`: "display_name", `{"display_name":"a\u0000"}`: "display_name", `{"display_name":"a\nb"}`: "display_name",
		`{"display_name":"a\u001f"}`: "display_name", `{"display_name":"a\u007f"}`: "display_name", `{"display_name":"a\u0080"}`: "display_name",
		`{"display_name":"a\u0085"}`: "display_name", `{"display_name":"a\u009f"}`: "display_name",
	},
	"decision 21 g": {
		`{"metadata":{"":"x"}}`: "metadata.", `{"metadata":{"":null}}`: "metadata.", `{"metadata":{"a b":"x"}}`: "metadata.a b",
		`{"metadata":{"a b":null}}`: "metadata.a b", `{"metadata":{"é":"x"}}`: "metadata.é",
		`{"metadata":{` + quoted("k", 65) + `:"x"}}`:  "metadata." + strings.Repeat("k", 65),
		`{"metadata":{` + quoted("k", 65) + `:null}}`: "metadata." + strings.Repeat("k", 65),
		`{"metadata":{"a":` + quoted("ü", 501) + `}}`: "metadata.a", `{"metadata":{"a":` + quoted("😀", 501) + `}}`: "metadata.a",
		`{"metadata":{"a":"\u0000"}}`: "metadata.a", "{\"metadata\":{\"a\":\"\xc3\"}}": "metadata.a",
	},
}

func TestPatchBody(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `UPDATE devices SET display_name = 'Gym', metadata = '{"k":"v"}'`)
	before := f.get(t, devicePath).body
	conformance.Covers(t, "decision 19 a", "spec 2, device, display_name, limit", "spec 7, validation_failed", "spec 8, display_name",
		"spec 4, patch, display_name, set",
		"spec 4, patch, metadata")
	for sentence, bodies := range badBodies {
		conformance.Covers(t, sentence)
		for body, param := range bodies {
			f.patch(t, body).requireInvalid(t, param)
		}
	}
	require.Contains(t, string(f.patch(t, `{"display_name":""}`).body), "Send null")

	conformance.Covers(t, "decision 19 h 1", "decision 19 h 2", "spec 4, patch, assignment", "spec 9, rule 3")
	f.resetRateLimits(t)
	for _, value := range []string{
		`null`, `{}`, `{"type":"place","label":"x"}`, `[]`, `""`, `"assignment"`, `0`, `false`, `1e400`, `[[[{"a":[]}]]]`,
		`{"a":1,"a":2}`, `"\ud800"`,
	} {
		for _, body := range []string{
			`{"assignment":%s}`, `{"display_name":"New","assignment":%s}`, `{"assignment":%s,"metadata":{"k":"new"}}`, `{"x":1,"assignment":%s}`,
			`{"display_name":2,"display_name":3,"assignment":%s}`, `{"assignment":%[1]s,"assignment":%[1]s}`, `{"\u0061ssignment":%s}`,
			`{"assignment":%s} 1`,
			"{\"x\":\"\xff\",\"assignment\":%s}",
		} {
			f.patch(t, fmt.Sprintf(body, value), idempotencyKey("k")).requireError(t, roomsensor.CodeNotImplemented, "assignment")
		}
	}
	require.Equal(t, string(before), string(f.get(t, devicePath).body), "nothing was written")
	f.patch(t, `{"display_name":"assignment","metadata":{"assignment":"x"}}`).requireOK(t)
}

// Limits count code points. Every character outside category Cc may be in a name, and every one but NUL in a tag.
func TestPatchCharacters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 20 a", "decision 20 b 1", "decision 21 e", "decision 21 f", "decision 21 g")
	f := setup(t)
	for _, text := range []string{
		" ", "~", "\u00a0", "\u200b", "\u2028", "\ufeff", "\ue000", "\U0010ffff", "\u0301", "🏋️‍♀️", "\u202e", "null",
		strings.Repeat("é", 200), strings.Repeat("\u0301", 200), strings.Repeat("漢", 200), strings.Repeat("😀", 200),
	} {
		f.patch(t, `{"display_name":"`+text+`","metadata":{"v":"`+text+`"}}`).requireOK(t)
		require.Equal(t, patched{&text, map[string]string{"v": text}}, f.device(t))
	}
	for _, escaped := range []string{"", `x\ny`, `\u0001`, `\u007f`, `\u0085`, strings.Repeat("ü", 500), strings.Repeat("😀", 500)} {
		f.patch(t, `{"metadata":{"v":"`+escaped+`"}}`).requireOK(t)
		var want string
		require.NoError(t, json.Unmarshal([]byte(`"`+escaped+`"`), &want))
		require.Equal(t, want, f.device(t).Metadata["v"])
	}
	for r := rune(0); r <= 0x80; r++ { // Every ASCII character in a key.
		got := f.patch(t, fmt.Sprintf(`{"metadata":{"a\u%04x":null}}`, r))
		if strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-", r) {
			got.requireOK(t)
		} else {
			got.requireInvalid(t, "metadata.a"+string(r))
		}
	}
	f.patch(t, `{"metadata":{`+quoted("k", 64)+`:"x"}}`).requireOK(t)
}

func TestPatchHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19 f", "spec 4, patch, content_type", "spec 4, patch, idempotency_key", "spec 8, idempotency_key")
	f := setup(t)
	const body = `{"display_name":"x"}`
	require := func(got response, ok bool, param string) {
		t.Helper()
		if ok {
			got.requireOK(t)
		} else {
			got.requireInvalid(t, param)
		}
	}
	for contentType, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON;charset=UTF-8": true,
		"application/json; charset=latin1": false, "text/json": false, "application/merge-patch+json": false,
		"application/x-www-form-urlencoded": false, "": false, "application/json, application/json": false,
		`application/json; charset="utf-8"`: true, "application/json;": true, "json": false,
	} {
		require(f.patch(t, body, setHeader("Content-Type", contentType)), ok, "Content-Type")
	}
	f.patch(t, body, setHeader("Content-Type")).requireInvalid(t, "Content-Type")
	f.patch(t, body, header("Content-Encoding", "gzip")).requireInvalid(t, "Content-Encoding")
	for key, ok := range map[string]bool{
		"": false, "x": true, strings.Repeat("k", 255): true, strings.Repeat("k", 256): false,
		strings.Repeat("é", 255): true, strings.Repeat("é", 256): false, "\xff": false,
	} {
		require(f.patch(t, body, idempotencyKey(key)), ok, "Idempotency-Key")
	}
	// Headers are checked before the size (decision 22 a).
	f.patch(t, strings.Repeat(" ", 64<<10+1), setHeader("Idempotency-Key", "a", "b")).requireInvalid(t, "Idempotency-Key")
}

func TestPatchSize(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19 g")
	f := setup(t)
	fits := `{"display_name":"x"}` + strings.Repeat(" ", 64<<10-20)
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	withLength := func(*http.Request) {}
	for _, length := range []option{withLength, chunked} {
		f.patch(t, fits, length).requireOK(t)
		f.patch(t, fits+" ", length).requireError(t, roomsensor.CodeRequestTooLarge, "")
	}
}

// At most 50 keys remain after the merge, also when requests arrive at the same time; no merge is lost.
func TestPatchTagLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 21 a", "decision 21 d")
	f := setup(t)
	const clients = 60
	statuses := make(chan int, clients)
	for i := range clients {
		go func() {
			statuses <- f.try(t.Context(), http.MethodPatch, "/v1"+devicePath, fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i), withKey(f.key),
				asJSON).status
		}()
	}
	count := map[int]int{}
	for range clients {
		count[<-statuses]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 50, http.StatusBadRequest: 10}, count)
	tags := f.device(t).Metadata
	require.Len(t, tags, 50)
	f.patch(t, `{"metadata":{"one":"more"}}`).requireInvalid(t, "metadata")
	require.Equal(t, tags, f.device(t).Metadata, "nothing is written")
	present := slices.Collect(maps.Keys(tags))[0]
	f.patch(t, `{"metadata":{"`+present+`":"new"}}`).requireOK(t)
	f.patch(t, `{"metadata":{"`+present+`":null,"one":"more"}}`).requireOK(t)
}
