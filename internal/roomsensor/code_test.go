package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestCodes checks that every code is documented once and in full.
func TestCodes(t *testing.T) {
	t.Parallel()
	seen := map[roomsensor.Code]bool{}
	for _, info := range roomsensor.Codes {
		require.False(t, seen[info.Code], info.Code)
		seen[info.Code] = true
		require.GreaterOrEqual(t, info.Status, 400)
		for _, text := range []string{info.Cause, info.Message, info.Fix, info.Retry} {
			require.NotEmpty(t, text, info.Code)
		}
		require.Equal(t, info.Status, info.Code.Status())
		require.Equal(t, info.Message, info.Code.New().Message)
	}
}
