package httpedge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// A parameter of another endpoint, or of a path, is not taken for the key of a tag.
func TestParametersOfOtherEndpoints(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"building": true, "devices": false, "device_id": false, "assignment_id": false, "labels": false, "excel": false,
	} {
		_, err := ParseQuery(name+"=x", CursorParameter, LimitParameter, MetadataPrefix)
		var answer *roomsensor.Error
		require.ErrorAs(t, err, &answer)
		require.Equal(t, want, strings.Contains(answer.Message, `"metadata.`+name+`"`), answer.Message)
	}
}

// FuzzQuery checks ParseQuery: an accepted parameter is known, decoded and not repeated, and a metadata filter is
// UTF-8; the error of any other query is validation_failed (decision 6).
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1&cursor=x", "metadata.a=b&metadata.=c", "a;b", "%zz", "limit=%ff", "limit=1&limit=1", "key=rsk_a_b", "&=&",
	} {
		f.Add(seed)
	}
	known := []string{CursorParameter, LimitParameter, MetadataPrefix}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := ParseQuery(raw, known...)
		if err != nil {
			var answer *roomsensor.Error
			require.ErrorAs(t, err, &answer)
			require.Equal(t, roomsensor.CodeValidationFailed, answer.Code)
			require.True(t, utf8.ValidString(answer.Param))
			return
		}
		seen := map[string]bool{}
		for _, p := range q {
			require.False(t, seen[p.Name])
			seen[p.Name] = true
			require.True(t, p.Name == CursorParameter || p.Name == LimitParameter || len(p.Name) > len(MetadataPrefix))
			require.True(t, utf8.ValidString(p.Name))
			require.True(t, utf8.ValidString(p.Value) || !strings.HasPrefix(p.Name, MetadataPrefix))
		}
		require.NotContains(t, raw, ";")
	})
}
