package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestTexts checks that a text is replaced in each form that it can have in JSON: 𠮷 has two escapes.
func TestTexts(t *testing.T) {
	t.Parallel()
	texts := roomsensor.NewTexts(`𠮷 "Zoë"`, "of")
	for text, want := range map[string]string{
		`Room of 𠮷 "ZOË"`: "Room of X", `{"a":"𠮷 \"Zoë\""}`: `{"a":"X"}`, `{"a":"\ud842\udfb7 \"Zo\u00eb\""}`: `{"a":"X"}`,
	} {
		require.Equal(t, want, string(texts.Replace([]byte(text), "X")))
	}
	require.True(t, roomsensor.NewTexts("of").None(), "too short")
}
