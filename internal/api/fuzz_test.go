package api

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// FuzzQuery holds the parser to decision 6: what it takes is known, decoded,
// as a tag UTF-8, and stands once; what it refuses is validation_failed.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1&cursor=x", "metadata.a=b&metadata.=c", "a;b", "%zz", "limit=%ff", "limit=1&limit=1", "key=rsk_a_b", "&=&",
	} {
		f.Add(seed)
	}
	known := names{cursorParameter, limitParameter, metadataPrefix}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw, known)
		if err != nil {
			var answer *roomsensor.Error
			require.ErrorAs(t, err, &answer)
			require.Equal(t, roomsensor.CodeValidationFailed, answer.Code)
			require.True(t, utf8.ValidString(answer.Param))
			return
		}
		seen := map[string]bool{}
		for _, p := range q {
			require.False(t, seen[p.name])
			seen[p.name] = true
			require.True(t, p.name == cursorParameter || p.name == limitParameter || len(p.name) > len(metadataPrefix))
			require.True(t, utf8.ValidString(p.name))
			require.True(t, utf8.ValidString(p.value) || !strings.HasPrefix(p.name, metadataPrefix))
		}
		require.NotContains(t, raw, ";")
	})
}

// FuzzURLCredentials holds the search for key= to an answer for every query.
func FuzzURLCredentials(f *testing.F) {
	for _, seed := range []string{"key=rsk_a_b", "key", "key=&key=", "k%65y=1", "%zz&key=%zz", "a;key=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		key, err := urlCredentials(raw)
		if err != nil {
			require.Contains(t, []roomsensor.Code{roomsensor.CodeAPIKeyMissing, roomsensor.CodeAPIKeyInvalid}, answerTo(err).Code)
			return
		}
		require.True(t, key == "" || strings.Contains(raw, "="))
	})
}

// FuzzPatch holds the parser of PATCH bodies to decisions 19 to 21: what it
// takes can be stored, what it refuses is an error of the API's own.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"display_name":"x"}`, `{"metadata":{"a":"b","c":null}}`, `{"metadata":null}`, `{"assignment":1}`, `{`, `[]`,
		`{"display_name":"\ud800"}`, "{\"metadata\":{\"a\":\"\xff\"}}", `{"metadata":{"a":1,"a":2}}`, `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		patch, err := parsePatch(body)
		if err != nil {
			var answer *roomsensor.Error
			require.ErrorAs(t, err, &answer)
			require.Contains(t, []roomsensor.Code{roomsensor.CodeValidationFailed, roomsensor.CodeNotImplemented}, answer.Code)
			return
		}
		if patch.DisplayName != nil {
			require.NoError(t, roomsensor.CheckName(*patch.DisplayName))
		}
		for key, value := range patch.Metadata.Values {
			require.NoError(t, roomsensor.CheckMetadataKey(key))
			if value != nil {
				require.NoError(t, roomsensor.CheckMetadataValue(*value))
			}
		}
		require.True(t, patch.SetDisplayName || patch.Metadata.Clear || patch.Metadata.Values != nil)
		require.True(t, utf8.Valid(body))
	})
}
