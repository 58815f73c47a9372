package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// taggedDevices are the tags of one device, and queries that must find it or not.
var taggedDevices = map[string]struct{ found, not []string }{
	`{"floor":"1"}`: {
		[]string{"metadata.floor=1", "metadata%2Efloor=1", "%6Detadata.floor=%31", "metadata.floor=1&limit=5"},
		[]string{"metadata.floor=", "metadata.floor=01", "metadata.floor=1.0", "metadata.floor=+1", "metadata.floor=1+", "metadata.floor=11", "metadata.floor=%25", "metadata.floor=_", "metadata.floor=*", "metadata.Floor=1", "metadata.flo=1", "metadata.floor.=1", "metadata..floor=1", "metadata.+floor=1", "metadata.floor%00=1", "metadata.floor=1%00", "metadata.floor=%221%22"},
	},
	`{"a.b":"x","a":"y"}`: {
		[]string{"metadata.a.b=x", "metadata.a=y", "metadata.a%2Eb=x&metadata.a=y"},
		[]string{"metadata.b=x", "metadata.a=x", "metadata.a.b=y", "metadata.a.b=x&metadata.a=x"},
	},
	`{"metadata.x":"1"}`: {[]string{"metadata.metadata.x=1"}, []string{"metadata.x=1", "metadata.metadata.metadata.x=1"}},
	`{".":"dot","..":"dots","-":"dash"}`: {
		[]string{"metadata..=dot", "metadata...=dots", "metadata.-=dash", "metadata..=dot&metadata...=dots"}, []string{"metadata...=dot"},
	},
	`{"v":"a=b&c;d+e f%g\"\\"}`: {
		[]string{"metadata.v=a%3Db%26c%3Bd%2Be+f%25g%22%5C", "metadata.v=a=b%26c%3Bd%2Be%20f%25g%22%5C"},
		[]string{"metadata.v=a", "metadata.v=a%3Db%26c%3Bd+e+f%25g%22%5C"},
	},
	"{\"name\":\"é\"}":                         {[]string{"metadata.name=%C3%A9"}, []string{"metadata.name=e%CC%81", "metadata.name=%C3%89", "metadata.name=e"}},
	`{"t":"true","n":"null","z":"0","o":"{}"}`: {[]string{"metadata.t=true&metadata.n=null&metadata.z=0&metadata.o=%7B%7D"}, []string{"metadata.z=false", "metadata.m=null"}},
	`{"` + strings.Repeat("k", 64) + `":"` + strings.Repeat("ü", 500) + `"}`: {
		[]string{"metadata." + strings.Repeat("k", 64) + "=" + strings.Repeat("%C3%BC", 500)},
		[]string{"metadata." + strings.Repeat("k", 65) + "=" + strings.Repeat("%C3%BC", 500), "metadata." + strings.Repeat("k", 64) + "=" + strings.Repeat("%C3%BC", 499)},
	},
	`{"e":""}`: {[]string{"metadata.e=", "metadata.e"}, []string{"metadata.e=+", "metadata.f="}},
}

func TestTagsCompareExactly(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.10", "decision 18.1", "decision 18.2")
	f := setup(t)
	for tags, queries := range taggedDevices {
		f.patch(t, `{"metadata":null}`)
		var want map[string]string
		require.NoError(t, json.Unmarshal([]byte(tags), &want))
		require.Equal(t, want, decode[patched](t, f.patch(t, `{"metadata":`+tags+`}`)).Metadata)
		for _, path := range []string{"/devices", "/devices/current"} {
			for _, query := range queries.found {
				require.Len(t, decode[list[device]](t, f.get(t, path+"?"+query)).Data, 1, "%s %s", tags, query)
			}
			for _, query := range queries.not {
				require.Empty(t, decode[list[device]](t, f.get(t, path+"?"+query)).Data, "%s %s", tags, query)
			}
		}
	}
}

func TestTagsWithoutAKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 18.3")
	f := setup(t)
	for _, path := range []string{"/devices", "/devices/current"} {
		for _, query := range []string{"metadata.=x", "metadata.=", "metadata.", "metadata%2E=x", "limit=1&metadata.=x", "metadata.=x&metadata.a=b"} {
			f.get(t, path+"?"+query).requireError(t, roomsensor.CodeValidationFailed, "metadata.")
		}
	}
}
