package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

type patched struct {
	DisplayName *string           `json:"display_name"`
	Metadata    map[string]string `json:"metadata"`
}

func (f *fixture) device(t *testing.T) patched {
	t.Helper()
	return decode[patched](t, f.get(t, "/devices/"+deviceID.String()))
}

// Decisions 20 and 21.
func TestPatch(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 21.1", "decision 21.2", "decision 21.3")
	conformance.Covers(t, "spec 4, PATCH, display_name", "spec 4, PATCH, display_name null",
		"spec 4, PATCH, metadata", "spec 4, PATCH, response")
	name := func(n string) *string { return &n }
	for body, want := range map[string]patched{
		`{"display_name":"Hall"}`:                                 {name("Hall"), map[string]string{"a": "1", "b": "2"}},
		`{"display_name":null}`:                                   {nil, map[string]string{"a": "1", "b": "2"}},
		`{"metadata":{}}`:                                         {name("Gym"), map[string]string{"a": "1", "b": "2"}},
		`{"metadata":null}`:                                       {name("Gym"), map[string]string{}},
		`{"metadata":{"a":null}}`:                                 {name("Gym"), map[string]string{"b": "2"}},
		`{"metadata":{"z":null}}`:                                 {name("Gym"), map[string]string{"a": "1", "b": "2"}},
		`{"metadata":{"a":"","c":"3"}}`:                           {name("Gym"), map[string]string{"a": "", "b": "2", "c": "3"}},
		`{"metadata":{"A-Z_0.9:x":"\u0000 is not it"}}`:           {},
		`{"display_name":"\ud83d\ude00","metadata":{"b":null}}`:   {name("😀"), map[string]string{"a": "1"}},
		` { "metadata" : null , "display_name" : "x" } ` + "\r\n": {name("x"), map[string]string{}},
		`{"\u0064isplay_name":"y"}`:                               {name("y"), map[string]string{"a": "1", "b": "2"}},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.exec(t, `UPDATE devices SET display_name = 'Gym', metadata = '{"a":"1","b":"2"}'`)
			got := f.patch(t, body)
			if want.Metadata == nil {
				got.requireError(t, roomsensor.CodeValidationFailed, "metadata.A-Z_0.9:x")
				return
			}
			require.Equal(t, want, decode[patched](t, got))
			require.Equal(t, want, f.device(t))
			require.Equal(t, string(f.get(t, "/devices/"+deviceID.String()).body), string(got.body), "the updated Device")
		})
	}
}

// patchBodies are bodies and what they are answered; an empty code is 200.
var patchBodies = map[string]struct {
	body  string
	code  roomsensor.Code
	param string
}{
	"no body":                   {``, roomsensor.CodeValidationFailed, ""},
	"blank":                     {" \n", roomsensor.CodeValidationFailed, ""},
	"null":                      {`null`, roomsensor.CodeValidationFailed, ""},
	"array":                     {`[]`, roomsensor.CodeValidationFailed, ""},
	"text":                      {`"display_name"`, roomsensor.CodeValidationFailed, ""},
	"empty object":              {`{}`, roomsensor.CodeValidationFailed, ""},
	"cut":                       {`{"display_name":"x"`, roomsensor.CodeValidationFailed, ""},
	"trailing comma":            {`{"display_name":"x",}`, roomsensor.CodeValidationFailed, ""},
	"trailing data":             {`{"display_name":"x"} {}`, roomsensor.CodeValidationFailed, ""},
	"trailing garbage":          {`{"display_name":"x"}x`, roomsensor.CodeValidationFailed, ""},
	"byte order mark":           {"\ufeff" + `{"display_name":"x"}`, roomsensor.CodeValidationFailed, ""},
	"single quotes":             {`{'display_name':'x'}`, roomsensor.CodeValidationFailed, ""},
	"unknown field":             {`{"display_name":"x","name":"y"}`, roomsensor.CodeValidationFailed, "name"},
	"unknown letter case":       {`{"Display_name":"x"}`, roomsensor.CodeValidationFailed, "Display_name"},
	"duplicate field":           {`{"display_name":"x","display_name":"x"}`, roomsensor.CodeValidationFailed, "display_name"},
	"duplicate spelt otherwise": {`{"metadata":{},"meta\u0064ata":{}}`, roomsensor.CodeValidationFailed, "metadata"},
	"duplicate tag":             {`{"metadata":{"a":"1","a":"1"}}`, roomsensor.CodeValidationFailed, "metadata.a"},
	"name is a number":          {`{"display_name":1}`, roomsensor.CodeValidationFailed, "display_name"},
	"name is an object":         {`{"display_name":{"a":1,"a":2}}`, roomsensor.CodeValidationFailed, "display_name"},
	"name is empty":             {`{"display_name":""}`, roomsensor.CodeValidationFailed, "display_name"},
	"name of 200":               {`{"display_name":` + quoted("é", 200) + `}`, "", ""},
	"name of 200 outside BMP":   {`{"display_name":` + quoted(`\ud83d\ude00`, 200) + `}`, "", ""},
	"name of 201":               {`{"display_name":` + quoted("é", 201) + `}`, roomsensor.CodeValidationFailed, "display_name"},
	"name with NUL":             {`{"display_name":"a\u0000"}`, roomsensor.CodeValidationFailed, "display_name"},
	"name with a line break":    {`{"display_name":"a\nb"}`, roomsensor.CodeValidationFailed, "display_name"},
	"name with C1":              {`{"display_name":"a\u0085"}`, roomsensor.CodeValidationFailed, "display_name"},
	"raw line break":            {"{\"display_name\":\"a\nb\"}", roomsensor.CodeValidationFailed, ""},
	"name with DEL":             {`{"display_name":"a\u007f"}`, roomsensor.CodeValidationFailed, "display_name"},
	"name not UTF-8":            {"{\"display_name\":\"a\xff\"}", roomsensor.CodeValidationFailed, "display_name"},
	"name half a surrogate":     {`{"display_name":"\ud800"}`, roomsensor.CodeValidationFailed, "display_name"},
	"field not UTF-8":           {"{\"\xff\":1}", roomsensor.CodeValidationFailed, ""},
	"metadata is a text":        {`{"metadata":"x"}`, roomsensor.CodeValidationFailed, "metadata"},
	"metadata is an array":      {`{"metadata":[]}`, roomsensor.CodeValidationFailed, "metadata"},
	"metadata is false":         {`{"metadata":false}`, roomsensor.CodeValidationFailed, "metadata"},
	"tag is a number":           {`{"metadata":{"a":1}}`, roomsensor.CodeValidationFailed, "metadata.a"},
	"tag is an object":          {`{"metadata":{"a":{}}}`, roomsensor.CodeValidationFailed, "metadata.a"},
	"tag without a key":         {`{"metadata":{"":"x"}}`, roomsensor.CodeValidationFailed, "metadata."},
	"tag key with a space":      {`{"metadata":{"a b":"x"}}`, roomsensor.CodeValidationFailed, "metadata.a b"},
	"tag key with a space gone": {`{"metadata":{"a b":null}}`, roomsensor.CodeValidationFailed, "metadata.a b"},
	"tag key of 64":             {`{"metadata":{` + quoted("k", 64) + `:"x"}}`, "", ""},
	"tag key of 65":             {`{"metadata":{` + quoted("k", 65) + `:"x"}}`, roomsensor.CodeValidationFailed, "metadata." + strings.Repeat("k", 65)},
	"tag of 500":                {`{"metadata":{"a":` + quoted("ü", 500) + `}}`, "", ""},
	"tag of 501":                {`{"metadata":{"a":` + quoted("ü", 501) + `}}`, roomsensor.CodeValidationFailed, "metadata.a"},
	"tag with NUL":              {`{"metadata":{"a":"\u0000"}}`, roomsensor.CodeValidationFailed, "metadata.a"},
	"tag with a line break":     {`{"metadata":{"a":"x\ny"}}`, "", ""},
	"tag not UTF-8":             {"{\"metadata\":{\"a\":\"\xc3\"}}", roomsensor.CodeValidationFailed, "metadata.a"},
	"deep":                      {`{"x":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`, roomsensor.CodeValidationFailed, ""},
	"assignment":                {`{"assignment":{"label":"x"}}`, roomsensor.CodeNotImplemented, "assignment"},
	"assignment null":           {`{"display_name":"Never","assignment":null}`, roomsensor.CodeNotImplemented, "assignment"},
	"assignment beside faults":  {`{"x":1,"display_name":2,"display_name":3,"assignment":1,"assignment":2}`, roomsensor.CodeNotImplemented, "assignment"},
	"assignment spelt out":      {`{"\u0061ssignment":0}`, roomsensor.CodeNotImplemented, "assignment"},
	"assignment before data":    {`{"assignment":0} 1`, roomsensor.CodeNotImplemented, "assignment"},
	"assignment and not UTF-8":  {"{\"x\":\"\xff\",\"assignment\":0}", roomsensor.CodeNotImplemented, "assignment"},
	"assignment, broken syntax": {`{"assignment":0,}`, roomsensor.CodeValidationFailed, ""},
	"assignment as a tag":       {`{"metadata":{"assignment":"x"}}`, "", ""},
	"assignment as a value":     {`{"display_name":"assignment"}`, "", ""},
}

func quoted(r string, n int) string { return `"` + strings.Repeat(r, n) + `"` }

// Decisions 19 to 21.
func TestPatchBodies(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19.1", "decision 19.5", "decision 19.8", "decision 20.1", "decision 20.2", "decision 21.7")
	conformance.Covers(t, "spec 2, device, display_name, limit", "spec 4, PATCH, display_name",
		"spec 4, PATCH, metadata", "spec 4, PATCH, assignment", "spec 7, code validation_failed",
		"spec 8, display_name", "spec 9, rule 3")
	f := setup(t)
	for name, tc := range patchBodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := f.patch(t, tc.body)
			if tc.code == "" {
				require.Equal(t, http.StatusOK, got.status, string(got.body))
				return
			}
			got.requireError(t, tc.code, tc.param)
			require.NotContains(t, string(f.get(t, "/devices/"+deviceID.String()).body), "Never")
		})
	}
	require.Contains(t, string(f.patch(t, `{"display_name":""}`).body), "Send null")
}

func TestPatchHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19.6")
	conformance.Covers(t, "spec 4, PATCH, Content-Type", "spec 4, PATCH, Idempotency-Key",
		"spec 8, Idempotency-Key")
	f := setup(t)
	const body = `{"display_name":"x"}`
	for contentType, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON;charset=UTF-8": true,
		"application/json; charset=latin1": false, "text/json": false, "application/merge-patch+json": false,
		"application/x-www-form-urlencoded": false, "": false, "application/json, application/json": false,
		`application/json; charset="utf-8"`: true, "application/json;": true, "json": false,
	} {
		got := f.patch(t, body, func(r *http.Request) { r.Header.Set("Content-Type", contentType) })
		if ok {
			require.Equal(t, http.StatusOK, got.status, contentType)
		} else {
			got.requireError(t, roomsensor.CodeValidationFailed, "Content-Type")
		}
	}
	f.patch(t, body, func(r *http.Request) { r.Header.Del("Content-Type") }).
		requireError(t, roomsensor.CodeValidationFailed, "Content-Type")
	f.patch(t, body, header("Content-Encoding", "gzip")).requireError(t, roomsensor.CodeValidationFailed, "Content-Encoding")
	for key, ok := range map[string]bool{
		"": false, "x": true, strings.Repeat("k", 255): true, strings.Repeat("k", 256): false,
		strings.Repeat("é", 255): true, strings.Repeat("é", 256): false, "\xff": false,
	} {
		got := f.patch(t, body, header("Idempotency-Key", key))
		if ok {
			require.Equal(t, http.StatusOK, got.status, key)
		} else {
			got.requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")
		}
	}
	f.patch(t, body, header("Idempotency-Key", "a"), header("Idempotency-Key", "a")).
		requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")
}

func TestPatchSize(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 19.7")
	f := setup(t)
	fits := `{"display_name":"x"}` + strings.Repeat(" ", 64<<10-20)
	require.Len(t, fits, 64<<10)
	require.Equal(t, http.StatusOK, f.patch(t, fits).status)
	f.patch(t, fits+" ").requireError(t, roomsensor.CodeRequestTooLarge, "")
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	require.Equal(t, http.StatusOK, f.patch(t, fits, chunked).status)
	f.patch(t, fits+" ", chunked).requireError(t, roomsensor.CodeRequestTooLarge, "")
}

func TestTagsAfterTheMerge(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 21.4")
	f := setup(t)
	tags := func(first, n int) string {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"k%d":"v"`, first+i)
		}
		return `{"metadata":{` + strings.Join(members, ",") + `}}`
	}
	require.Len(t, decode[patched](t, f.patch(t, tags(0, 50))).Metadata, 50)
	require.Equal(t, http.StatusOK, f.patch(t, tags(10, 40)).status)
	f.patch(t, tags(50, 1)).requireError(t, roomsensor.CodeValidationFailed, "metadata")
	require.Len(t, f.device(t).Metadata, 50, "nothing is written")
	require.Equal(t, http.StatusOK, f.patch(t, `{"metadata":{"k0":null,"k50":"v"}}`).status)
}
