package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestTexts checks that a text is replaced wherever it is. The spellings are those of a test of package people, which
// finds them with PostgreSQL.
func TestTexts(t *testing.T) {
	t.Parallel()
	texts := roomsensor.NewTexts(`𠮷 "Zoë"/K.`, "of", "")
	for _, spelling := range []string{
		`𠮷 "ZOË"/k.`, `𠮷 \"zoë\"\/K.`, `\uD842\udfB7\u0020\u0022\u007Ao\u00CB\u0022\u002fK\u002e`,
		`\\ud842\\udfb7 \\\"Zo\\u00eb\\\"\\\/\u212a.`, "𠮷 \"zoë\"/\u212a.",
	} {
		require.Equal(t, "<X>", string(texts.Replace([]byte("<"+spelling+">"), "X")))
	}
	for _, other := range []string{`𠮷 "Zoe"/K.`, `𠮷 "Zoë"/KX`, "of"} {
		require.Equal(t, other, string(texts.Replace([]byte(other), "X")))
		require.False(t, texts.In([]byte(other)))
	}
	none := roomsensor.NewTexts("of")
	require.True(t, none.None(), "too short")
	require.Equal(t, "of", string(none.Replace([]byte("of"), "X")))
}
