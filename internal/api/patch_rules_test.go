package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// wrongBodies are bodies that are refused, by the sentence that says so, and the param.
var wrongBodies = map[string]map[string]string{
	"decision 19.1": {
		`{}`: "", ` { } `: "", `null`: "", `[]`: "", `[{"display_name":"x"}]`: "", `"x"`: "", `1`: "", `true`: "", ``: "", ` `: "", `{`: "", `}`: "",
		`{"display_name"}`: "", `{display_name:"x"}`: "", `{"display_name":x}`: "", `{"display_name":"x" "metadata":{}}`: "",
		`/**/{"display_name":"x"}`: "", `{"display_name":"x",}`: "", `{"display_name":NaN}`: "", "{\"display_name\":\"x\x00\"}": "", "\xff": "",
	},
	"decision 19.2": {
		`{"name":"x"}`: "name", `{"display_name":"x","x":null}`: "x", `{"metadata":{},"metadata.a":"x"}`: "metadata.a", `{"Metadata":{}}`: "Metadata",
		`{"display_name ":"x"}`: "display_name ", `{"device_id":"x"}`: "device_id", `{"status":"online","display_name":"x"}`: "status", `{"\u0078":1}`: "x",
		`{"Assignment":1}`: "Assignment", `{"assignment_id":1}`: "assignment_id", `{"x":{"a":1,"a":1}}`: "x",
	},
	"decision 19.3": {
		`{"display_name":"x","display_name":"y"}`: "display_name", `{"display_name":null,"display_name":null}`: "display_name",
		`{"metadata":{},"metadata":null}`: "metadata", `{"metadata":{},"display_name":"x","\u006detadata":{}}`: "metadata",
		`{"metadata":{"a":"1","b":"2","a":"1"}}`: "metadata.a", `{"metadata":{"a":null,"\u0061":"1"}}`: "metadata.a", `{"metadata":{"a":null,"a":null}}`: "metadata.a",
	},
	"decision 19.4": {
		`{"display_name":"x"}{}`: "", `{"display_name":"x"} {"display_name":"y"}`: "", `{"display_name":"x"},`: "", `{"display_name":"x"}}`: "",
		`{"display_name":"x"} null`: "", `{"display_name":"x"} 1`: "", `{"display_name":"x"}//`: "", "{\"display_name\":\"x\"}\x00": "",
		"{\"display_name\":\"x\"}\f": "", "{\"display_name\":\"x\"}\u00a0": "", "{\"display_name\":\"x\"}\ufeff": "",
	},
	"decision 19.5": {
		`{"display_name":1}`: "display_name", `{"display_name":true}`: "display_name", `{"display_name":["x"]}`: "display_name", `{"display_name":{}}`: "display_name",
		`{"metadata":"{}"}`: "metadata", `{"metadata":0}`: "metadata", `{"metadata":false}`: "metadata", `{"metadata":[]}`: "metadata", `{"metadata":[{"a":"b"}]}`: "metadata",
		`{"metadata":{"a":1}}`: "metadata.a", `{"metadata":{"a":true}}`: "metadata.a", `{"metadata":{"a":[]}}`: "metadata.a", `{"metadata":{"a":{"b":"c"}}}`: "metadata.a",
		`{"metadata":{"b":"x","a":1.5}}`: "metadata.a", `{"display_name":"x","metadata":{"a":-0}}`: "metadata.a",
	},
}

func TestWrongBodies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `UPDATE devices SET display_name = 'Gym', metadata = '{"k":"v"}'`)
	before := f.get(t, "/devices/"+deviceID.String()).body
	for sentence, bodies := range wrongBodies {
		conformance.Covers(t, sentence)
		for body, param := range bodies {
			f.patch(t, body).requireError(t, roomsensor.CodeValidationFailed, param)
		}
	}
	require.Equal(t, string(before), string(f.get(t, "/devices/"+deviceID.String()).body), "nothing was written")
	for _, body := range []string{`{"display_name":"x"}` + " \t\r\n", "\n{\"metadata\":{}}", `{"display_name":null,"metadata":null}`} {
		require.Equal(t, http.StatusOK, f.patch(t, body).status, body)
	}
}

func TestReservedFieldWhateverItsValue(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19.8", "decision 19.9")
	f := setup(t)
	f.exec(t, `UPDATE devices SET display_name = 'Gym', metadata = '{"k":"v"}'`)
	before := f.get(t, "/devices/"+deviceID.String()).body
	for _, value := range []string{
		`null`, `{}`, `{"type":"place","label":"x"}`, `[]`, `""`, `"assignment"`, `0`, `false`, `1e400`, `[[[{"a":[]}]]]`, `{"a":1,"a":2}`, `"\ud800"`,
	} {
		for _, body := range []string{
			`{"assignment":%s}`, `{"display_name":"New","assignment":%s}`, `{"assignment":%s,"metadata":{"k":"new"}}`, `{"x":1,"assignment":%s}`,
			`{"display_name":"","assignment":%s}`, `{"assignment":%[1]s,"assignment":%[1]s}`, `{"\u0061ssignment":%s}`,
		} {
			f.patch(t, fmt.Sprintf(body, value), header("Idempotency-Key", "k")).requireError(t, roomsensor.CodeNotImplemented, "assignment")
		}
	}
	require.Equal(t, string(before), string(f.get(t, "/devices/"+deviceID.String()).body))
	require.Equal(t, http.StatusOK, f.patch(t, `{"metadata":{"assignment":"x"}}`).status, "a tag may be called so")
}

func TestCharactersOfANameAndATag(t *testing.T) {
	t.Parallel()
	f := setup(t)
	conformance.Covers(t, "decision 20.1", "decision 21.5", "decision 21.6", "decision 21.7")
	for r := rune(0); r <= 0xa0; r++ {
		name := fmt.Sprintf(`{"display_name":"a\u%04xb"}`, r)
		got := f.patch(t, name)
		if unicode.Is(unicode.Cc, r) {
			got.requireError(t, roomsensor.CodeValidationFailed, "display_name")
		} else {
			require.Equal(t, "a"+string(r)+"b", *decode[patched](t, got).DisplayName)
		}
		inKey := r < 0x80 && strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-", r)
		for _, value := range []string{`"v"`, `null`} {
			got = f.patch(t, fmt.Sprintf(`{"metadata":{"a\u%04x":%s}}`, r, value))
			if inKey {
				require.Equal(t, http.StatusOK, got.status)
			} else {
				got.requireError(t, roomsensor.CodeValidationFailed, "metadata.a"+string(r))
			}
		}
		got = f.patch(t, fmt.Sprintf(`{"metadata":{"v":"\u%04x"}}`, r))
		if r == 0 {
			got.requireError(t, roomsensor.CodeValidationFailed, "metadata.v")
		} else {
			require.Equal(t, string(r), decode[patched](t, got).Metadata["v"])
		}
		f.forgetRequests(t)
		f.exec(t, `UPDATE devices SET metadata = '{}'`)
	}
	for _, name := range []string{" ", "\u200b", "\u2028", "\ufeff", "\ue000", "\U0010ffff", "\u0301", "🏋️‍♀️", "\u202e", "null"} {
		require.Equal(t, name, *decode[patched](t, f.patch(t, `{"display_name":"`+name+`","metadata":{"v":"`+name+`"}}`)).DisplayName)
		require.Equal(t, name, f.device(t).Metadata["v"])
	}
}

func TestLengthsOfANameAndATag(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 20.1", "decision 21.5", "decision 21.6", "decision 21.7")
	f := setup(t)
	for _, unit := range []string{"a", "é", "\u0301", "漢", "😀"} {
		for n, fits := range map[int]bool{1: true, 200: true, 201: false, 500: false} {
			got := f.patch(t, `{"display_name":`+quoted(unit, n)+`}`)
			if fits {
				require.Equal(t, strings.Repeat(unit, n), *f.device(t).DisplayName)
			} else {
				got.requireError(t, roomsensor.CodeValidationFailed, "display_name")
			}
		}
		for n, fits := range map[int]bool{0: true, 1: true, 500: true, 501: false, 5000: false} {
			got := f.patch(t, `{"metadata":{"a":`+quoted(unit, n)+`}}`)
			if fits {
				require.Equal(t, strings.Repeat(unit, n), f.device(t).Metadata["a"])
			} else {
				got.requireError(t, roomsensor.CodeValidationFailed, "metadata.a")
			}
		}
	}
	for n, fits := range map[int]bool{0: false, 1: true, 64: true, 65: false, 1000: false} {
		for _, value := range []string{`"v"`, `null`} {
			got := f.patch(t, `{"metadata":{`+quoted("k", n)+`:`+value+`}}`)
			if fits {
				require.Equal(t, http.StatusOK, got.status, n)
			} else {
				got.requireError(t, roomsensor.CodeValidationFailed, "metadata."+strings.Repeat("k", n))
			}
		}
	}
}

// Every merge finds the one before it: none of many at once is lost.
func TestMergesAtOnce(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 21.1", "decision 21.4")
	f := setup(t)
	const clients = 60
	statuses := make(chan int, clients)
	for i := range clients {
		go func() {
			statuses <- f.try(t.Context(), http.MethodPatch, "/v1/devices/"+deviceID.String(), fmt.Sprintf(`{"metadata":{"k%d":"v"}}`, i),
				withKey(f.key), header("Content-Type", "application/json")).status
		}()
	}
	count := map[int]int{}
	for range clients {
		count[<-statuses]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 50, http.StatusBadRequest: 10}, count)
	require.Len(t, f.device(t).Metadata, 50)
}
