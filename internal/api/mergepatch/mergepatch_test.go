package mergepatch_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/api/mergepatch"
	"roomsensor/internal/roomsensor"
)

// FuzzParse checks Parse: an accepted body can be stored, and any other causes a documented error (decisions 19 to
// 21).
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"display_name":"x"}`, `{"metadata":{"a":"b","c":null}}`, `{"metadata":null}`, `{"assignment":1}`, `{`, `[]`,
		`{"display_name":"\ud800"}`, "{\"metadata\":{\"a\":\"\xff\"}}", `{"metadata":{"a":1,"a":2}}`, `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		patch, err := mergepatch.Parse(body)
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
